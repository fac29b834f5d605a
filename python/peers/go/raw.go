package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"

	"github.com/quic-go/quic-go"
)

const (
	bulk        = 10 << 20
	many        = 200
	largestCode = 1<<62 - 1
)

func serve(options Options) error {
	config, err := options.quicConfig()
	if err != nil {
		return err
	}
	serverTLS, err := options.serverTLS(alpn)
	if err != nil {
		return err
	}
	socket, err := options.listen()
	if err != nil {
		return err
	}
	transport := &quic.Transport{
		Conn:                socket,
		VerifySourceAddress: func(net.Addr) bool { return options.Retry },
	}
	listener, err := transport.ListenEarly(serverTLS, config)
	if err != nil {
		return err
	}
	go func() {
		for {
			conn, err := listener.Accept(context.Background())
			if err != nil {
				return
			}
			go obey(conn)
		}
	}()
	return untilInputEnds(socket)
}

// Does what a client says on its streams, until it leaves, as it likes.
func obey(conn *quic.Conn) {
	ctx := conn.Context()
	go func() {
		for {
			stream, err := conn.AcceptStream(ctx)
			if err != nil {
				return
			}
			go obeyStream(conn, stream)
		}
	}()
	go func() {
		for {
			receive, err := conn.AcceptUniStream(ctx)
			if err != nil {
				return
			}
			go func() {
				if send, err := conn.OpenUniStreamSync(ctx); err == nil {
					echo(send, receive)
				}
			}()
		}
	}()
	for {
		datagram, err := conn.ReceiveDatagram(ctx)
		if err != nil || conn.SendDatagram(datagram) != nil {
			return
		}
	}
}

func obeyStream(conn *quic.Conn, stream *quic.Stream) {
	word, code, err := readCommand(stream)
	if err != nil {
		return
	}
	switch word {
	case "reset":
		stream.CancelWrite(quic.StreamErrorCode(code))
	case "stop":
		stream.CancelRead(quic.StreamErrorCode(code))
	case "close":
		conn.CloseWithError(quic.ApplicationErrorCode(code), "as told")
	default:
		echo(stream, stream)
	}
}

func call(options Options) (seen, error) {
	if options.Scenario == "update" {
		return nil, cannot("quic-go cannot be told to change keys")
	}
	config, err := options.quicConfig()
	if err != nil {
		return nil, err
	}
	clientTLS, err := options.clientTLS(alpn)
	if err != nil {
		return nil, err
	}
	if options.Scenario == "resume" {
		return resume(options.address(), clientTLS, config)
	}
	scenario, found := scenarios[options.Scenario]
	if !found {
		return nil, fmt.Errorf("there is no scenario `%s`", options.Scenario)
	}
	conn, err := quic.DialAddr(context.Background(), options.address(), clientTLS, config)
	if err != nil {
		return nil, err
	}
	if err := scenario(conn); err != nil {
		return nil, err
	}
	conn.CloseWithError(0, "")
	return seen{"ok": true}, nil
}

var scenarios = map[string]func(*quic.Conn) error{
	"handshake": func(conn *quic.Conn) error {
		if negotiated := conn.ConnectionState().TLS.NegotiatedProtocol; negotiated != alpn {
			return fmt.Errorf("the protocol is `%s`", negotiated)
		}
		return echoed(conn, []byte("hello"))
	},
	"bulk": func(conn *quic.Conn) error {
		data := make([]byte, bulk)
		for index := range data {
			data[index] = byte(index)
		}
		return echoed(conn, data)
	},
	"many": func(conn *quic.Conn) error {
		outcomes := make(chan error, many)
		for number := range many {
			go func() { outcomes <- echoed(conn, []byte(strings.Repeat(strconv.Itoa(number), 100))) }()
		}
		for range many {
			if err := <-outcomes; err != nil {
				return err
			}
		}
		return nil
	},
	"uni": func(conn *quic.Conn) error {
		send, err := conn.OpenUniStreamSync(conn.Context())
		if err != nil {
			return err
		}
		if err := write(send, []byte("one way")); err != nil {
			return err
		}
		receive, err := conn.AcceptUniStream(conn.Context())
		if err != nil {
			return err
		}
		return expect(receive, []byte("one way"))
	},
	"codes": func(conn *quic.Conn) error {
		for _, code := range []quic.StreamErrorCode{0, 7, largestCode} {
			for _, play := range []func(*quic.Conn, quic.StreamErrorCode) error{seeReset, seeStop, reset, stop} {
				if err := play(conn, code); err != nil {
					return err
				}
			}
		}
		return nil
	},
	"close": func(conn *quic.Conn) error {
		if _, err := command(conn, "close %d", uint64(largestCode)); err != nil {
			return err
		}
		<-conn.Context().Done()
		end := context.Cause(conn.Context())
		if !errors.Is(end, &quic.ApplicationError{Remote: true, ErrorCode: largestCode, ErrorMessage: "as told"}) {
			return fmt.Errorf("another end of the connection: %w", end)
		}
		return nil
	},
	"datagrams": func(conn *quic.Conn) error {
		if err := echoed(conn, nil); err != nil {
			return err
		}
		if err := conn.SendDatagram([]byte("datagram")); err != nil {
			return err
		}
		datagram, err := conn.ReceiveDatagram(conn.Context())
		if err == nil && string(datagram) != "datagram" {
			return fmt.Errorf("another datagram: %q", datagram)
		}
		return err
	},
}

// Two connections; the second sends its data early.
func resume(address string, clientTLS *tls.Config, config *quic.Config) (seen, error) {
	tickets := tls.NewLRUClientSessionCache(1)
	clientTLS.ClientSessionCache = tickets
	conn, err := quic.DialAddr(context.Background(), address, clientTLS, config)
	if err != nil {
		return nil, err
	}
	for kept := false; !kept; _, kept = tickets.Get(serverName) {
		if err := echoed(conn, []byte("first")); err != nil {
			return nil, err
		}
	}
	conn.CloseWithError(0, "")
	conn, err = quic.DialAddrEarly(context.Background(), address, clientTLS, config)
	if err != nil {
		return nil, err
	}
	if err := echoed(conn, []byte("second")); errors.Is(err, quic.Err0RTTRejected) {
		return seen{"resumed": false}, nil
	} else if err != nil {
		return nil, err
	}
	<-conn.HandshakeComplete()
	resumed := conn.ConnectionState().Used0RTT
	conn.CloseWithError(0, "")
	return seen{"resumed": resumed}, nil
}

func seeReset(conn *quic.Conn, code quic.StreamErrorCode) error {
	stream, err := command(conn, "reset %d", uint64(code))
	if err != nil {
		return err
	}
	_, err = io.ReadAll(stream)
	return expectCode(err, code)
}

func seeStop(conn *quic.Conn, code quic.StreamErrorCode) error {
	stream, err := command(conn, "stop %d", uint64(code))
	if err != nil {
		return err
	}
	<-stream.Context().Done()
	return expectCode(context.Cause(stream.Context()), code)
}

func reset(conn *quic.Conn, code quic.StreamErrorCode) error {
	stream, err := watched(conn)
	if err != nil {
		return err
	}
	stream.CancelWrite(code)
	return expect(stream, fmt.Appendf(nil, "reset %d", uint64(code)))
}

// The server keeps which code it saw.
func stop(conn *quic.Conn, code quic.StreamErrorCode) error {
	stream, err := watched(conn)
	if err != nil {
		return err
	}
	stream.CancelRead(code)
	return echoed(conn, nil)
}

// The server says that it watches by a byte.
func watched(conn *quic.Conn) (*quic.Stream, error) {
	stream, err := command(conn, "watch")
	if err != nil {
		return nil, err
	}
	_, err = io.ReadFull(stream, make([]byte, 1))
	return stream, err
}

func expectCode(err error, code quic.StreamErrorCode) error {
	cancelled, ok := errors.AsType[*quic.StreamError](err)
	if !ok || !cancelled.Remote || cancelled.ErrorCode != code {
		return fmt.Errorf("code %d was expected: %w", uint64(code), err)
	}
	return nil
}

// Opens a stream that goes on after the command.
func command(conn *quic.Conn, format string, arguments ...any) (*quic.Stream, error) {
	stream, err := conn.OpenStreamSync(conn.Context())
	if err != nil {
		return nil, err
	}
	_, err = fmt.Fprintf(stream, format+"\n", arguments...)
	return stream, err
}

// Has data come back on a stream.
func echoed(conn *quic.Conn, data []byte) error {
	stream, err := conn.OpenStreamSync(conn.Context())
	if err != nil {
		return err
	}
	return exchange(stream, data)
}
