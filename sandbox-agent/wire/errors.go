package wire

// Codes of errors. The HTTP status that carries each stands beside it.
// Everything but CodeInternal and CodeCancelled is answered before anything ran. An upload that is
// refused leaves nothing, whatever came of it.
const (
	CodeBadRequest       = "bad_request"        // 400
	CodeIDInUse          = "id_in_use"          // 400
	CodeUnauthorized     = "unauthorized"       // 401
	CodeForbidden        = "forbidden"          // 403
	CodeOutsideWorkspace = "outside_workspace"  // 403
	CodeNotFound         = "not_found"          // 404
	CodeMethodNotAllowed = "method_not_allowed" // 405
	CodeNotAcceptable    = "not_acceptable"     // 406
	CodeStalled          = "stalled"            // 408: an upload said nothing for too long
	CodeNameTaken        = "name_taken"         // 409: so are all names like it
	CodeSessionRequired  = "session_required"   // 409: bind, then repeat
	CodeSessionBound     = "session_bound"      // 409: bound to another Sandbox
	CodeChanged          = "changed"            // 409: the file was written to meanwhile: repeat
	CodeCancelled        = "cancelled"          // 409: its call was ended by its key
	CodeManyCalls        = "many_calls"         // 409: more than one call has the key
	CodeTooLarge         = "too_large"          // 413
	CodeUnsupportedMedia = "unsupported_media"  // 415
	CodeQuiesced         = "quiesced"           // 410
	CodeOutOfRange       = "out_of_range"       // 416
	CodeNotRegular       = "not_regular"        // 422
	CodeNotDirectory     = "not_directory"      // 422
	CodeNotText          = "not_text"           // 422: it has no lines; read bytes
	CodeNoMatch          = "no_match"           // 422: what an edit replaces is not there
	CodeManyMatches      = "many_matches"       // 422: it is there more than once
	CodeNotRunning       = "not_running"        // 422: the process has ended
	CodeInputClosed      = "input_closed"       // 422: the process takes no more input
	CodeIsJob            = "is_job"             // 422: the shell's own, see KindJob
	CodeQueueFull        = "queue_full"         // 429, with Retry-After
	CodeTooManyArtifacts = "too_many_artifacts" // 429
	CodeTooManyProcesses = "too_many_processes" // 429
	CodeInternal         = "internal"           // 500
	CodeNoShell          = "no_shell"           // 503
	CodeDraining         = "draining"           // 503
	CodeNoSpace          = "no_space"           // 507
)

// ErrorBody is the body of every answer whose status is 400 or more.
type ErrorBody struct {
	Error ErrorDetail `json:"error"`
}

// ErrorDetail says what failed: Code for programs, Message for people.
type ErrorDetail struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// NoRoute begins the message of a CodeNotFound for a route that an agent doesn't
// have: of agents of every version, older ones than their gateway too.
const NoRoute = "there is no such route"
