// Package e2e holds the test that brings up real clusters. It has the build tag
// e2e since it needs root and, the first time, minutes to build everything:
//
//	go test -tags e2e ./e2e
package e2e
