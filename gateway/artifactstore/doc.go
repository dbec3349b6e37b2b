// Package artifactstore keeps exported files in S3-compatible buckets, so that they
// outlive their session until they expire.
//
// A store is defined by the gateway's configuration and named by a template. The
// gateway alone talks to it: neither a template, nor a sandbox, nor a caller sees
// its address or its credentials.
//
// An object holds one file. Its key holds when it expires, first, so that a list
// in order begins with what has expired; and the session that it is of:
//
//	<prefix>artifacts/<expiry>/<namespace>/<session>/<128 random bits>
//
// A token holds all of that but the prefix (package artifact), so no table is
// needed to find it. Whose it is, what it is called and its SHA-256 are in the
// object's metadata, so one request answers a read, also when session and Sandbox
// are gone.
//
// An object appears when its last byte has arrived, and that byte is sent only if
// all of them have the SHA-256 that the session's agent gave before: so there is
// never an object with a digest that isn't its own, nor a part of a file.
package artifactstore
