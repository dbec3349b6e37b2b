package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// stockArgument makes this program the peer: a stock SDK server in a process of
// its own, as the gateway is one.
const stockArgument = "stock-server"

// noop is the tool of the stock server.
const noop = "noop"

// serveStock serves a tool that does nothing on a free port of loopback, prints
// its address, and ends with its standard input. It is stateless, as the gateway
// is, since a server with the SDK's defaults doesn't speak the newest protocol:
// so both are called in the same way. All else is the SDK's default.
func serveStock() error {
	server := mcp.NewServer(&mcp.Implementation{Name: "stock", Version: "v1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: noop, Description: "Does nothing."},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, struct{}, error) {
			return nil, struct{}{}, nil
		})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/mcp", mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
		&mcp.StreamableHTTPOptions{Stateless: true}))
	httpServer := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	fmt.Println(listener.Addr())
	go func() {
		// The parent is gone when the pipe ends; an error of it says the same.
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = httpServer.Close()
	}()
	if err := httpServer.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// startStock starts the stock server. stop ends it.
func startStock(ctx context.Context) (address string, stop func() error, err error) {
	_, lines, stop, err := startSelf(ctx, stockArgument)
	if err != nil {
		return "", nil, err
	}
	address, err = lines.ReadString('\n')
	if err != nil {
		return "", nil, errors.Join(fmt.Errorf("the stock server did not say its address: %w", err), stop())
	}
	return strings.TrimSpace(address), stop, nil
}

// startSelf starts this program in another role, which ends when stop closes its
// standard input.
func startSelf(ctx context.Context, arguments ...string) (stdin io.Writer, stdout *bufio.Reader, stop func() error, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, nil, err
	}
	command := exec.CommandContext(ctx, self, arguments...)
	command.Stderr = os.Stderr
	in, err := command.StdinPipe()
	if err != nil {
		return nil, nil, nil, err
	}
	out, err := command.StdoutPipe()
	if err != nil {
		return nil, nil, nil, err
	}
	if err := command.Start(); err != nil {
		return nil, nil, nil, err
	}
	return in, bufio.NewReader(out), func() error { return errors.Join(in.Close(), command.Wait()) }, nil
}
