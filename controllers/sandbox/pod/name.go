package pod

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// nameLimit keeps a pod's name a legal hostname.
const nameLimit = 63

// hashLength hex digits of SHA-256 follow the sandbox's name: 48 bits, taken from
// a UID that nobody chooses.
const hashLength = 12

// Name is the name of the pod of that generation: the sandbox's name, cut to fit,
// and a hash of its UID and the generation. Two reconcilers that mean the same pod
// use the same name, so the API server lets only one of them create it.
func Name(sandbox string, uid types.UID, generation int64) string {
	sum := sha256.Sum256([]byte(string(uid) + "/" + strconv.FormatInt(generation, 10)))
	prefix := sandbox
	if room := nameLimit - hashLength - 1; len(prefix) > room {
		prefix = strings.TrimRight(prefix[:room], "-")
	}
	return prefix + "-" + hex.EncodeToString(sum[:])[:hashLength]
}
