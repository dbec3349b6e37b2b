package tasks

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/berth-dev/berth/gateway/session"
)

// ID names a task of a session. As text it is a handle, no secret and no signature:
// where the task is, and when it began, so that any replica finds it without a table.
type ID struct {
	session.Key
	// Name is that of the command or process in its agent.
	Name string
	// Pod is the mark of the pod that it runs in.
	Pod string
	// Created is when it began, in seconds since 1970.
	Created int64
}

// Mark is what an ID has of a pod's UID.
func Mark(podUID string) string {
	sum := sha256.Sum256([]byte(podUID))
	return hex.EncodeToString(sum[:4])
}

// String is the taskId: <namespace>.<session>.<name>.<pod>.<created>.
func (id ID) String() string {
	return strings.Join([]string{id.Namespace, id.Key.Name, id.Name, id.Pod, strconv.FormatInt(id.Created, 10)}, ".")
}

// Began is when the task began.
func (id ID) Began() time.Time { return time.Unix(id.Created, 0) }

// IsProcess tells whether the task is a background process, not a command.
func (id ID) IsProcess() bool { return strings.HasPrefix(id.Name, "p-") }

var (
	names   = regexp.MustCompile(`^(?:t-[0-9a-f]{32}|p-[0-9a-f]{16})$`)
	marks   = regexp.MustCompile(`^[0-9a-f]{8}$`)
	created = regexp.MustCompile(`^[1-9][0-9]{0,11}$`)
)

// errMalformed is all that is said about a taskId that is none: it is as unknown as
// any other.
var errMalformed = errors.New("not a task id")

// ParseID reads a taskId. It accepts exactly what String makes.
func ParseID(s string) (ID, error) {
	parts := strings.SplitN(s, ".", 6)
	if len(parts) != 5 {
		return ID{}, errMalformed
	}
	id := ID{Key: session.Key{Namespace: parts[0], Name: parts[1]}, Name: parts[2], Pod: parts[3]}
	if !session.ValidID(id.Namespace) || !session.ValidID(id.Key.Name) || !names.MatchString(id.Name) ||
		!marks.MatchString(id.Pod) || !created.MatchString(parts[4]) {
		return ID{}, errMalformed
	}
	var err error
	id.Created, err = strconv.ParseInt(parts[4], 10, 64)
	return id, err
}
