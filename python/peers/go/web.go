package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"github.com/quic-go/webtransport-go"
)

const again = 100 * time.Millisecond

func webServe(options Options) error {
	serverTLS, err := options.serverTLS(http3.NextProtoH3)
	if err != nil {
		return err
	}
	socket, err := options.listen()
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	server := &webtransport.Server{H3: &http3.Server{TLSConfig: serverTLS, Handler: mux}}
	mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) {
		session, err := server.Upgrade(w, r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		obeySession(session)
	})
	go func() { fail(server.Serve(socket)) }()
	return untilInputEnds(socket)
}

// Does what a client says on its streams, until the session ends.
func obeySession(session *webtransport.Session) {
	ctx := session.Context()
	go func() {
		for {
			stream, err := session.AcceptStream(ctx)
			if err != nil {
				return
			}
			go obeyWebStream(session, stream)
		}
	}()
	go func() {
		for {
			receive, err := session.AcceptUniStream(ctx)
			if err != nil {
				return
			}
			go func() {
				if send, err := session.OpenUniStreamSync(ctx); err == nil {
					echo(send, receive)
				}
			}()
		}
	}()
	for {
		datagram, err := session.ReceiveDatagram(ctx)
		if err != nil || session.SendDatagram(datagram) != nil {
			return
		}
	}
}

func obeyWebStream(session *webtransport.Session, stream *webtransport.Stream) {
	word, code, err := readCommand(stream)
	if err != nil {
		return
	}
	if word == "close" {
		session.CloseWithError(webtransport.SessionErrorCode(code), "as told")
		return
	}
	echo(stream, stream)
}

func webCall(options Options) (seen, error) {
	path := "/echo"
	if options.Scenario == "reject" {
		path = "/nowhere"
	}
	answer, session, err := open(options, path)
	if unmet, ok := errors.AsType[*webtransport.RequirementsNotMetError](err); ok {
		return nil, cannot("webtransport-go speaks only later drafts: " + unmet.Message)
	}
	if answer != nil && options.Scenario == "reject" {
		return seen{"status": answer.StatusCode}, nil
	}
	if err != nil {
		return nil, err
	}
	switch options.Scenario {
	case "echo":
		if err := echoSession(session); err != nil {
			return nil, err
		}
		session.CloseWithError(0, "")
		return seen{"ok": true}, nil
	case "close":
		return seeSessionClose(session)
	}
	return nil, fmt.Errorf("there is no scenario `%s`", options.Scenario)
}

func open(options Options, path string) (*http.Response, *webtransport.Session, error) {
	clientTLS, err := options.clientTLS(http3.NextProtoH3)
	if err != nil {
		return nil, nil, err
	}
	transport := webtransport.Transport{
		TLSClientConfig: clientTLS,
		QUICConfig: &quic.Config{
			HandshakeIdleTimeout:             limit / 2,
			EnableDatagrams:                  true,
			EnableStreamResetPartialDelivery: true,
		},
		DialAddr: func(ctx context.Context, _ string, tls *tls.Config, config *quic.Config) (*quic.Conn, error) {
			return quic.DialAddrEarly(ctx, options.address(), tls, config)
		},
	}
	url := fmt.Sprintf("https://%s:%d%s", serverName, options.Port, path)
	return transport.Dial(context.Background(), url, nil)
}

func echoSession(session *webtransport.Session) error {
	ctx := session.Context()
	stream, err := session.OpenStreamSync(ctx)
	if err != nil {
		return err
	}
	if err := exchange(stream, bytes.Repeat([]byte("0123456789"), 10_000)); err != nil {
		return err
	}
	send, err := session.OpenUniStreamSync(ctx)
	if err != nil {
		return err
	}
	if err := write(send, []byte("one way")); err != nil {
		return err
	}
	receive, err := session.AcceptUniStream(ctx)
	if err != nil {
		return err
	}
	if err := expect(receive, []byte("one way")); err != nil {
		return err
	}
	return echoDatagram(session)
}

// Sends a datagram until it comes back.
func echoDatagram(session *webtransport.Session) error {
	for {
		if err := session.SendDatagram([]byte("datagram")); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(session.Context(), again)
		datagram, err := session.ReceiveDatagram(ctx)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) {
			continue
		}
		if err == nil && string(datagram) != "datagram" {
			return fmt.Errorf("another datagram: %q", datagram)
		}
		return err
	}
}

func seeSessionClose(session *webtransport.Session) (seen, error) {
	stream, err := session.OpenStreamSync(session.Context())
	if err != nil {
		return nil, err
	}
	if _, err := fmt.Fprintln(stream, "close 1234"); err != nil {
		return nil, err
	}
	_, err = session.AcceptStream(context.Background())
	end, ok := errors.AsType[*webtransport.SessionError](err)
	if !ok || !end.Remote {
		return nil, fmt.Errorf("the session was not closed: %w", err)
	}
	return seen{"code": end.ErrorCode, "reason": end.Message}, nil
}
