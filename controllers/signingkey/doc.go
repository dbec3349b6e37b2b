// Package signingkey keeps the ring of keys that sign requests to agents: a
// Secret in the controller's own namespace with one private key per entry. The
// first key is made once; nothing here ever changes or replaces an entry. An
// administrator rotates by adding one.
package signingkey
