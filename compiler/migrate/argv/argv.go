package argv

import "shunt/compiler/diag"

// Direct is the file in the positions of arguments that were given directly, whose
// column is their index from 1.
const Direct = "argv"

// Arg is one element of a command line after the program name.
type Arg struct {
	// Text is the element after unquoting.
	Text string
	// Pos is where it stands. The file Direct has no lines, and the column is
	// the index of the argument from 1.
	Pos diag.Pos
	// Open names the variables that the input does not define; Text keeps them
	// as written.
	Open []string
}

// Env is a variable of the environment that the router starts with.
type Env struct {
	Name, Value string
	Pos         diag.Pos
	// Open names the variables that Value keeps as written.
	Open []string
}

// File is a file that the input carries along, such as an entry of a ConfigMap.
type File struct {
	// Data is the content, and Pos where it starts.
	Data []byte
	Pos  diag.Pos
}

// Invocation is how a router is started.
type Invocation struct {
	Program string
	Args    []Arg
	Env     []Env
	// Container is the container, service or unit; it is empty for a plain
	// command line.
	Container string
	// Files are by the path that the router sees.
	Files map[string]File
}

// FromArgs is the invocation of arguments that were given directly.
func FromArgs(args []string) Invocation {
	in := Invocation{Args: make([]Arg, len(args))}
	for i, text := range args {
		in.Args[i] = Arg{Text: text, Pos: diag.Pos{File: Direct, Column: i + 1}}
	}
	return in
}
