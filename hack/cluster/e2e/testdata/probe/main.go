// Probe is both ends of the connections that the end-to-end test tries.
//
//	probe serve ADDRESS    accepts connections and greets
//	probe dial ADDRESS     exits with 0 if it's greeted within a second, else with 1
package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"time"
)

const greeting = "hello\n"

func main() {
	var err error
	switch os.Args[1] {
	case "serve":
		err = serve(os.Args[2])
	case "dial":
		err = dial(os.Args[2])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(address string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	for {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		io.WriteString(conn, greeting) // who hangs up early isn't greeted
		conn.Close()
	}
}

func dial(address string) error {
	conn, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return err
	}
	got, err := io.ReadAll(conn)
	if err == nil && string(got) != greeting {
		err = fmt.Errorf("got %q", got)
	}
	return err
}
