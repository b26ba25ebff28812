package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"
)

// shells lists the shells that have a completion.
func shells() []string { return []string{"bash", "zsh", "fish"} }

func completionCommand(s *streams) *cli.Command {
	return &cli.Command{
		Name:      "completion",
		Usage:     "print a script that completes command lines",
		UsageText: "shunt completion bash|zsh|fish",
		Description: "Prints a script for a shell. It knows the commands, their options and what values those take, and\n" +
			"does not run shunt.\n\n" +
			"  bash: source <(shunt completion bash), in ~/.bashrc\n" +
			"  zsh: shunt completion zsh > FOLDER/_shunt, where FOLDER is in $fpath\n" +
			"  fish: shunt completion fish > ~/.config/fish/completions/shunt.fish",
		Action: func(c *cli.Context) error {
			if c.NArg() != 1 {
				return wrongUsage("completion needs a shell: bash, zsh or fish")
			}
			commands := documented(c.App)
			var text string
			switch shell := c.Args().First(); shell {
			case "bash":
				text = bashCompletion(commands)
			case "zsh":
				text = zshCompletion(commands)
			case "fish":
				text = fishCompletion(commands)
			default:
				return wrongUsage("there is no completion for %q; there are bash, zsh and fish", shell)
			}
			_, err := io.WriteString(s.out, text)
			return err
		},
	}
}

// quoteShell quotes a text for POSIX shells.
func quoteShell(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// allNames lists the names of all commands.
func allNames(commands []commandDoc) []string {
	var out []string
	for _, c := range commands {
		out = append(out, c.names...)
	}
	return append(out, "help")
}

// bashCompletion leaves names of files to readline, which completes them when
// the script has no answer. It works with the bash 3.2 of macOS.
func bashCompletion(commands []commandDoc) string {
	var aliases, values, options, words strings.Builder
	for _, c := range commands {
		fmt.Fprintf(&aliases, "\t%s) command=%s ;;\n", strings.Join(c.names, "|"), c.names[0])
		var names []string
		for _, o := range c.options {
			names = append(names, o.names...)
			if o.value == "" {
				continue
			}
			var patterns []string
			for _, name := range o.names {
				patterns = append(patterns, c.names[0]+":"+name)
			}
			list := ""
			if len(o.words) > 0 {
				list = " words=" + quoteShell(strings.Join(o.words, " "))
			}
			fmt.Fprintf(&values, "\t%s) known=1%s ;;\n", strings.Join(patterns, "|"), list)
		}
		fmt.Fprintf(&options, "\t\t%s) words=%s ;;\n", c.names[0], quoteShell(strings.Join(names, " ")))
		if len(c.words) > 0 {
			fmt.Fprintf(&words, "\t\t%s) words=%s ;;\n", c.names[0], quoteShell(strings.Join(c.words, " ")))
		}
	}
	return fmt.Sprintf(bashScript, quoteShell(strings.Join(allNames(commands), " ")), &aliases, &values, &options, &words)
}

// bashScript takes the names of all commands and the cases of the commands, of
// options with values, of the options and of the arguments of each command.
const bashScript = `# Completion of shunt for bash, written by: shunt completion bash
_shunt() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command= words= known=
	local commands=%[1]s
	COMPREPLY=()
	if [ "$COMP_CWORD" -eq 1 ]; then
		case $cur in
		-*) words='--help -h --version -v' ;;
		*) words=$commands ;;
		esac
		COMPREPLY=($(compgen -W "$words" -- "$cur"))
		return
	fi
	case ${COMP_WORDS[1]} in
%[2]s	help) [ "$COMP_CWORD" -eq 2 ] && COMPREPLY=($(compgen -W "$commands" -- "$cur"))
		return ;;
	*) return ;;
	esac
	# --option=value is three words.
	if [ "$cur" = = ]; then
		cur=
	elif [ "$prev" = = ] && [ "$COMP_CWORD" -gt 2 ]; then
		prev=${COMP_WORDS[COMP_CWORD-2]}
	fi
	case $command:$prev in
%[3]s	esac
	if [ -n "$known" ]; then
		:
	elif [ "${cur#-}" != "$cur" ]; then
		case $command in
%[4]s		esac
	else
		case $command in
%[5]s		esac
	fi
	[ -z "$words" ] || COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o default -F _shunt shunt
`

// quoteZsh writes a text in a specification of _arguments, which has meanings
// for brackets and colons.
func quoteZsh(text string) string {
	return strings.NewReplacer(`\`, `\\`, "[", `\[`, "]", `\]`, ":", `\:`, "'", `'\''`).Replace(text)
}

func zshCompletion(commands []commandDoc) string {
	var b strings.Builder
	b.WriteString("#compdef shunt\n# Completion of shunt for zsh, written by: shunt completion zsh\n\n_shunt() {\n")
	b.WriteString("\tlocal curcontext=\"$curcontext\" state line\n\tlocal -a commands\n\tcommands=(\n")
	for _, c := range commands {
		for _, name := range c.names {
			fmt.Fprintf(&b, "\t\t'%s:%s'\n", name, quoteZsh(c.usage))
		}
	}
	b.WriteString("\t\t'help:show help'\n\t)\n")
	b.WriteString("\t_arguments -C '(-)'{-h,--help}'[show help]' '(-)'{-v,--version}'[print the version]' '1: :->command' '*:: :->rest'\n")
	b.WriteString("\tcase $state in\n\tcommand) _describe command commands ;;\n\trest)\n\t\tcase $words[1] in\n")
	for _, c := range commands {
		fmt.Fprintf(&b, "\t\t%s)\n\t\t\t_arguments", strings.Join(c.names, "|"))
		for _, o := range c.options {
			for _, spec := range zshOption(&o) {
				b.WriteString(" \\\n\t\t\t\t" + spec)
			}
		}
		switch {
		case len(c.words) > 0:
			fmt.Fprintf(&b, " \\\n\t\t\t\t'*: :(%s)'", strings.Join(c.words, " "))
		case c.words != nil:
			b.WriteString(" \\\n\t\t\t\t'*:file:_files'")
		}
		b.WriteString(" ;;\n")
	}
	b.WriteString("\t\thelp) _describe command commands ;;\n\t\tesac ;;\n\tesac\n}\n\nif [ \"$funcstack[1]\" = _shunt ]; then\n\t_shunt \"$@\"\nelse\n\tcompdef _shunt shunt\nfi\n")
	return b.String()
}

// zshOption writes the specification of an option, one for each of its names.
func zshOption(o *optionDoc) []string {
	var out []string
	for _, name := range o.names {
		prefix := "(" + strings.Join(o.names, " ") + ")"
		if o.repeated {
			prefix = "*"
		}
		spec := prefix + name
		if o.value != "" && strings.HasPrefix(name, "--") {
			spec += "="
		}
		spec += "[" + quoteZsh(o.usage) + "]"
		switch {
		case len(o.words) > 0:
			spec += ":" + quoteZsh(o.value) + ":(" + strings.Join(o.words, " ") + ")"
		case o.file():
			spec += ":" + quoteZsh(o.value) + ":_files"
		case o.value != "":
			spec += ":" + quoteZsh(o.value) + ": "
		}
		out = append(out, "'"+spec+"'")
	}
	return out
}

// quoteFish quotes a text for fish.
func quoteFish(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(text) + "'"
}

func fishCompletion(commands []commandDoc) string {
	var b strings.Builder
	b.WriteString("# Completion of shunt for fish, written by: shunt completion fish\ncomplete -c shunt -f\n")
	b.WriteString("complete -c shunt -n __fish_use_subcommand -s h -l help -d 'show help'\n")
	b.WriteString("complete -c shunt -n __fish_use_subcommand -s v -l version -d 'print the version'\n")
	for _, c := range commands {
		for _, name := range c.names {
			fmt.Fprintf(&b, "complete -c shunt -n __fish_use_subcommand -a %s -d %s\n", name, quoteFish(c.usage))
		}
		when := "complete -c shunt -n '__fish_seen_subcommand_from " + strings.Join(c.names, " ") + "'"
		for _, o := range c.options {
			b.WriteString(when + fishOption(&o) + " -d " + quoteFish(o.usage) + "\n")
		}
		switch {
		case len(c.words) > 0:
			fmt.Fprintf(&b, "%s -a %s\n", when, quoteFish(strings.Join(c.words, " ")))
		case c.words != nil:
			fmt.Fprintf(&b, "%s -F\n", when)
		}
	}
	return b.String()
}

func fishOption(o *optionDoc) string {
	text := ""
	for _, name := range o.names {
		if long, ok := strings.CutPrefix(name, "--"); ok {
			text += " -l " + long
		} else {
			text += " -s " + name[1:]
		}
	}
	switch {
	case len(o.words) > 0:
		text += " -x -a " + quoteFish(strings.Join(o.words, " "))
	case o.file():
		text += " -r -F"
	case o.value != "":
		text += " -x"
	}
	return text
}
