package diag

// Identity is what a finding is known by in another run: neither its line nor
// the lines around it, so that it survives edits elsewhere in its file.
type Identity struct {
	Code Code `json:"code"`
	// File is its name with forward slashes.
	File string `json:"file"`
	// Path is the JSON pointer of the value, with names of elements in the
	// place of their indices.
	Path    string `json:"path"`
	Message string `json:"message"`
}
