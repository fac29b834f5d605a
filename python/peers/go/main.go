// quic-go and webtransport-go as a program: servers that obey commands, and clients that play a scenario.
//
//	quic-go-peer serve '{"cert": …, "key": …, "retry": false}'
//	quic-go-peer call '{"roots": …, "port": …, "scenario": "bulk"}'
//	quic-go-peer web-serve '{"cert": …, "key": …}'
//	quic-go-peer web-call '{"roots": …, "port": …, "scenario": "echo"}'
//	quic-go-peer http-serve '{"cert": …, "key": …}'
//	quic-go-peer http-call '{"roots": …, "port": …}'
//
// What the first two do is in python/tests/peers.py, which does the same with Python's libraries. Exit status 3: the
// library cannot do that.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"
)

const (
	failed  = 1
	refused = 3

	limit = 60 * time.Second
)

// What a client saw, to be printed as JSON.
type seen map[string]any

// What the library cannot do.
type cannot string

func (reason cannot) Error() string { return string(reason) }

func main() {
	// It would stand before the reason for an exit status.
	os.Setenv("QUIC_GO_DISABLE_RECEIVE_BUFFER_WARNING", "true")
	role, options, err := commandLine()
	if err != nil {
		fail(err)
	}
	switch role {
	case "serve":
		err = serve(options)
	case "web-serve":
		err = webServe(options)
	case "http-serve":
		err = httpServe(options)
	case "call":
		err = report(call, options)
	case "web-call":
		err = report(webCall, options)
	case "http-call":
		err = report(httpCall, options)
	default:
		err = fmt.Errorf("there is no role `%s`", role)
	}
	if err != nil {
		fail(err)
	}
}

// Plays a scenario, and prints what it saw.
func report(play func(Options) (seen, error), options Options) error {
	time.AfterFunc(limit, func() { fail(fmt.Errorf("`%s` takes longer than %v", options.Scenario, limit)) })
	saw, err := play(options)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(saw)
}

func fail(err error) {
	if reason, ok := errors.AsType[cannot](err); ok {
		fmt.Fprintln(os.Stderr, reason)
		os.Exit(refused)
	}
	fmt.Fprintln(os.Stderr, "error:", err)
	os.Exit(failed)
}
