package source

// ChildArgument marks the evaluation child.
const ChildArgument = childArgument
