// Package components knows what a cluster is made of, at which versions, and
// builds it from Go modules into a cache that all checkouts of a machine share.
//
// A component's folder is named by its version and by a hash of everything that
// decides its content, so it's never changed: a new pin is a new folder.
package components
