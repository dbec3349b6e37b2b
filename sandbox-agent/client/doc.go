// Package client is the only door to an agent: the gateway and the controller
// reach sandbox-agent through it and nothing else.
//
// A Signer holds the Ed25519 key ring and signs one token per request. A
// Client sends requests to the agent of one Pod at a time and keeps a few
// connections per pod for reuse. What an agent answers is not believed beyond
// its own session: every answer has a byte budget, every field is checked, no
// redirect is followed, and no address follows from an agent's word.
//
// # Errors
//
// An agent that refused answers with *Error, which errors.Is matches with
// ErrUnauthorized, ErrSessionRequired and their kin. Those are answered before
// anything ran. ErrNotSent means that not one byte left. Any other error from
// Exec leaves open whether the command ran, so it must not be repeated.
package client
