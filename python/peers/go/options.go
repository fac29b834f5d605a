package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"

	"github.com/quic-go/quic-go"
)

const (
	alpn       = "test"
	serverName = "localhost"
	host       = "127.0.0.1"
)

// The JSON of the command line.
type Options struct {
	Cert     string
	Key      string
	Roots    string
	Port     int
	Retry    bool
	Scenario string
	// The versions of QUIC to speak, where that is not left to the library.
	Versions []quic.Version
	// The version to begin with.
	OriginalVersion quic.Version `json:"original_version"`
}

func commandLine() (role string, options Options, err error) {
	if len(os.Args) != 3 {
		return "", options, errors.New("usage: PEER serve|call|web-serve|web-call|http-serve|http-call JSON")
	}
	return os.Args[1], options, json.Unmarshal([]byte(os.Args[2]), &options)
}

func (o Options) address() string {
	return fmt.Sprintf("%s:%d", host, o.Port)
}

func (o Options) quicConfig() (*quic.Config, error) {
	versions := o.Versions
	if o.OriginalVersion != 0 {
		versions = slices.Insert(slices.Clone(versions), 0, o.OriginalVersion)
	}
	for _, version := range versions {
		if !slices.Contains(quic.SupportedVersions(), version) {
			return nil, cannot(fmt.Sprintf("quic-go takes only versions that it speaks, not %#x", uint32(version)))
		}
	}
	return &quic.Config{
		Versions:             versions,
		HandshakeIdleTimeout: limit / 2,
		Allow0RTT:            true,
		EnableDatagrams:      true,
	}, nil
}

func (o Options) serverTLS(protocol string) (*tls.Config, error) {
	certificate, err := tls.LoadX509KeyPair(o.Cert, o.Key)
	if err != nil {
		return nil, err
	}
	return &tls.Config{Certificates: []tls.Certificate{certificate}, NextProtos: []string{protocol}}, nil
}

func (o Options) clientTLS(protocol string) (*tls.Config, error) {
	pem, err := os.ReadFile(o.Roots)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("there is no certificate in `%s`", o.Roots)
	}
	return &tls.Config{RootCAs: roots, ServerName: serverName, NextProtos: []string{protocol}}, nil
}

func (o Options) listen() (*net.UDPConn, error) {
	return net.ListenUDP("udp4", &net.UDPAddr{IP: net.ParseIP(host), Port: o.Port})
}

// Prints where the server listens, and returns when the input ends.
func untilInputEnds(socket *net.UDPConn) error {
	fmt.Println(socket.LocalAddr().(*net.UDPAddr).Port)
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}
