package main

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
)

// Reads the line that a stream begins with, and no byte more.
func readCommand(stream io.Reader) (word string, code uint64, err error) {
	var line []byte
	for !bytes.HasSuffix(line, []byte("\n")) {
		var next [1]byte
		if _, err := io.ReadFull(stream, next[:]); err != nil {
			return "", 0, err
		}
		line = append(line, next[0])
	}
	word, argument, found := strings.Cut(strings.TrimSpace(string(line)), " ")
	if found {
		code, err = strconv.ParseUint(argument, 10, 64)
	}
	return word, code, err
}

// Sends back what comes, until its end.
func echo(send io.WriteCloser, receive io.Reader) error {
	if _, err := io.Copy(send, receive); err != nil {
		return err
	}
	return send.Close()
}

// Sends all there is to send.
func write(send io.WriteCloser, data []byte) error {
	if _, err := send.Write(data); err != nil {
		return err
	}
	return send.Close()
}

// Gives a command with data, and expects the data back.
func exchange(stream io.ReadWriteCloser, data []byte) error {
	written := make(chan error, 1)
	go func() { written <- write(stream, append([]byte("echo\n"), data...)) }()
	if err := expect(stream, data); err != nil {
		return err
	}
	return <-written
}

// Expects data, and then the stream's end.
func expect(receive io.Reader, data []byte) error {
	come, err := io.ReadAll(receive)
	if err == nil && !bytes.Equal(come, data) {
		return errors.New("what came back is not what was expected")
	}
	return err
}
