"""Loads the event, load and hash code of the engines' own Python packages.

The packages need an accelerator stack to import as a whole. Only a few modules
matter here; they run unchanged on stand-ins for the packages around them.
Functions of larger modules are taken out of their source and run unchanged.
"""

import ast
import importlib
import importlib.util
import os
import subprocess
import sys
import sysconfig
import types


def packages(root, *names):
    """Makes empty packages whose submodules come from the unpacked wheel."""
    for name in names:
        module = types.ModuleType(name)
        module.__path__ = [os.path.join(root, *name.split("."))]
        sys.modules[name] = module


def stand_in(name, **content):
    module = types.ModuleType(name)
    module.__dict__.update(content)
    sys.modules[name] = module


def functions(path, names, scope):
    """Runs the named top-level definitions of a source file in a scope."""
    tree = ast.parse(open(path).read())

    def wanted(node):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            return node.name in names
        if isinstance(node, ast.Assign):
            return any(isinstance(t, ast.Name) and t.id in names for t in node.targets)
        return isinstance(node, ast.AnnAssign) and node.target.id in names

    tree.body = [n for n in tree.body if wanted(n)]
    found = {getattr(n, "name", None) or getattr(getattr(n, "target", None), "id", None) or n.targets[0].id for n in tree.body}
    if missing := set(names) - found:
        raise SystemExit(f"{path} has no {sorted(missing)}")
    code = ast.Module([ast.ImportFrom("__future__", [ast.alias("annotations")], 0)] + tree.body, [])
    exec(compile(ast.fix_missing_locations(code), path, "exec"), scope)
    return scope


def build_native(root, out):
    """Compiles the engine's own hash extension."""
    import pybind11

    target = os.path.join(out, "hicache_hash_cpp" + sysconfig.get_config_var("EXT_SUFFIX"))
    if not os.path.exists(target):
        source = os.path.join(root, "sglang/srt/mem_cache/cpp_utils/hash_binding.cpp")
        subprocess.check_call(
            ["c++", "-O2", "-std=c++17", "-shared", "-fPIC", "-w", "-DTORCH_EXTENSION_NAME=hicache_hash_cpp",
             "-I" + pybind11.get_include(), "-I" + sysconfig.get_paths()["include"], source, "-o", target, "-lcrypto"])
    spec = importlib.util.spec_from_file_location("hicache_hash_cpp", target)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class SGLang:
    def __init__(self, root, out):
        packages(root, "sglang", "sglang.srt", "sglang.srt.utils", "sglang.srt.mem_cache", "sglang.srt.managers",
                 "sglang.srt.mem_cache.cpp_utils", "sglang.srt.disaggregation", "sglang.srt.managers.scheduler_components")
        self.parallel = types.SimpleNamespace(pp_rank=0, attn_tp_rank=0, attn_cp_rank=0, attn_dp_size=1, attn_dp_rank=0,
                                              dp_rank=0, num_dp_ranks=1)
        stand_in("sglang.srt.runtime_context", get_parallel=lambda: self.parallel)
        native = importlib.import_module("sglang.srt.mem_cache.cpp_utils.native_hash")
        extension = build_native(root, out)
        native._load_native_hash_module = lambda: extension
        import hashlib
        scope = {"hashlib": hashlib, "get_native_hash": native.get_native_hash}
        functions(os.path.join(root, "sglang/srt/mem_cache/utils.py"),
                  ["get_hash_str", "storage_namespace_seed", "get_storage_hash_str", "hash_str_to_int64",
                   "compute_node_hash_values", "compute_node_event_hash_values"], scope)
        stand_in("sglang.srt.mem_cache.utils", **{k: v for k, v in scope.items() if not k.startswith("__")})
        self.utils = sys.modules["sglang.srt.mem_cache.utils"]
        self.kv = importlib.import_module("sglang.srt.disaggregation.kv_events")
        self.events = importlib.import_module("sglang.srt.mem_cache.events")
        self.load = importlib.import_module("sglang.srt.managers.scheduler_components.load_publisher")


class VLLM:
    def __init__(self, root):
        import hashlib
        import logging
        import typing
        packages(root, "vllm", "vllm.config", "vllm.utils", "vllm.distributed", "vllm.v1", "vllm.v1.core")
        stand_in("vllm.config.kv_events", KVEventsConfig=types.SimpleNamespace)
        stand_in("vllm.logger", init_logger=logging.getLogger)
        stand_in("vllm.utils.network_utils", get_ip=lambda: "127.0.0.1", get_tcp_uri=lambda ip, port: f"tcp://{ip}:{port}",
                 is_valid_ipv6_address=lambda _: False, split_zmq_path=None)
        self.hashing = importlib.import_module("vllm.utils.hashing")
        scope = {"os": os, "hashlib": hashlib, "BlockHash": bytes, "logger": logging.getLogger("vllm"),
                 "envs": types.SimpleNamespace(VLLM_KV_EVENTS_USE_INT_BLOCK_HASHES=True),
                 "xxhash": self.hashing.xxhash, "xxhash_cbor": self.hashing.xxhash_cbor}
        functions(os.path.join(root, "vllm/v1/core/kv_cache_utils.py"),
                  ["maybe_convert_block_hash", "DEFAULT_NONE_HASH_SEED", "_NON_CRYPTO_HASH_FUNCTIONS",
                   "resolve_none_hash_seed", "init_none_hash", "hash_block_tokens"], scope)
        self.cache = scope
        stand_in("vllm.v1.core.kv_cache_utils", ExternalBlockHash=typing.Union[bytes, int])
        self.kv = importlib.import_module("vllm.distributed.kv_events")

    def chain(self, tokens, size, seed):
        """The wire values of a prompt's full blocks, and their digests."""
        os.environ.pop("PYTHONHASHSEED", None)
        if seed:
            os.environ["PYTHONHASHSEED"] = seed
        self.cache["init_none_hash"](self.hashing.sha256_cbor)
        parent, wire = None, []
        for i in range(len(tokens) // size):
            parent = self.cache["hash_block_tokens"](self.hashing.sha256_cbor, parent, tokens[i * size:(i + 1) * size])
            wire.append(self.cache["maybe_convert_block_hash"](parent))
        return wire


class Key:
    """The key of a radix tree node, as far as recorder and hashes look at it."""

    def __init__(self, tokens, bigram=False, salt=None):
        self.token_ids, self.is_bigram, self.cache_salt, self.extra_key = tokens, bigram, salt, None

    def __len__(self):
        return max(len(self.token_ids) - 1, 0) if self.is_bigram else len(self.token_ids)


class Node:
    def __init__(self, key, parent):
        self.key, self.parent, self.hash_value, self.event_hash_value = key, parent, None, None


def root():
    node = Node(Key([]), None)
    node.hash_value = []
    return node
