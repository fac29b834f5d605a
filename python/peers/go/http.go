package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/quic-go/quic-go/http3"
)

// What a client of HTTP/3 saw of one answer.
type answer struct {
	Headers map[string]string `json:"headers"`
	Length  int               `json:"length"`
}

// Sends bodies back, with what was asked in the headers and their length in the trailers.
func httpServe(options Options) error {
	serverTLS, err := options.serverTLS(http3.NextProtoH3)
	if err != nil {
		return err
	}
	socket, err := options.listen()
	if err != nil {
		return err
	}
	server := &http3.Server{TLSConfig: serverTLS, Handler: http.HandlerFunc(sendBack)}
	go func() { fail(server.Serve(socket)) }()
	return untilInputEnds(socket)
}

func sendBack(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("x-method", r.Method)
	w.Header().Set("x-path", r.URL.RequestURI())
	w.Header().Set("trailer", "x-length")
	w.WriteHeader(http.StatusOK)
	length, err := io.Copy(w, r.Body)
	if err == nil {
		w.Header().Set("x-length", strconv.FormatInt(length, 10))
	}
}

// Sends bodies of several sizes to a server that sends them back.
func httpCall(options Options) (seen, error) {
	clientTLS, err := options.clientTLS(http3.NextProtoH3)
	if err != nil {
		return nil, err
	}
	transport := &http3.Transport{TLSClientConfig: clientTLS}
	defer transport.Close()
	client := &http.Client{Transport: transport}
	var answers []answer
	for _, size := range []int{0, 1, 1000, 500_000} {
		got, err := post(client, options.address(), make([]byte, size))
		if err != nil {
			return nil, err
		}
		answers = append(answers, got)
	}
	return seen{"answers": answers}, nil
}

func post(client *http.Client, address string, body []byte) (answer, error) {
	request, err := http.NewRequest("POST", "https://"+address+"/echo?q=1", bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	request.Header.Set("x-long", strings.Repeat("long", 100))
	response, err := client.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	back, err := io.ReadAll(response.Body)
	if err == nil && !bytes.Equal(back, body) {
		err = fmt.Errorf("%d bytes came back as %d others", len(body), len(back))
	}
	headers := map[string]string{":status": strconv.Itoa(response.StatusCode)}
	for name := range response.Header {
		headers[strings.ToLower(name)] = response.Header.Get(name)
	}
	return answer{headers, len(back)}, err
}
