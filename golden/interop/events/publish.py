"""Publishes cache events and load with the engines' own classes.

publish.py ENGINE ROOT OUT PORT RANKS LIFE [HWM]

Serves /server_info on PORT, events of rank r on PORT+1+r, replays from
PORT+1+RANKS, loads after them. Each command line on stdin makes it publish; the
answer on stdout is one JSON line with what every rank now holds.
"""

import http.server
import json
import random
import sys
import threading
import time
import types

from engines import VLLM, Key, Node, SGLang, root as tree_root

engine, source, out = sys.argv[1:4]
port, ranks, life = map(int, sys.argv[4:7])
hwm = int(sys.argv[7]) if len(sys.argv) > 7 else 100000
SIZE = 4
SEED = "0"
random.seed(life)
base, replay, loads = port + 1, port + 1 + ranks, port + 1 + 2 * ranks
api = SGLang(source, out) if engine == "sglang" else VLLM(source)
publishers = [api.kv.ZmqEventPublisher(r, endpoint=f"tcp://*:{base}", replay_endpoint=f"tcp://*:{replay}", topic="kv", hwm=hwm)
              for r in range(ranks)]
kv_events = {"publisher": "zmq", "endpoint_host": "*", "endpoint_port_base": base, "topic": "kv", "block_size": SIZE,
             "dp_size": ranks, "replay_endpoint_port_base": replay}
load_publishers = []
if engine == "sglang":
    recorders = [api.events.KVCacheEventRecorder(enabled=True, page_size=SIZE) for _ in range(ranks)]
    kv_events.update(load_endpoint_port_base=loads, load_topic="load")
    api.parallel.num_dp_ranks = ranks
    for r in range(ranks):
        api.parallel.dp_rank = r
        load_publishers.append(api.load.SchedulerLoadPublisher(
            kv_events_config=json.dumps({"publisher": "zmq", "endpoint": f"tcp://*:{base}", "replay_endpoint": f"tcp://*:{replay}"}),
            load_publish_endpoint="auto"))


class Info(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = json.dumps({"served_model_name": "m", "kv_events": kv_events}).encode()
        self.send_response(200 if self.path == "/server_info" else 404)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Info)
threading.Thread(target=server.serve_forever, daemon=True).start()

# held: for every prompt its tokens, salt and the depth on each rank.
held = []


def flush(rank, events):
    if events:
        publishers[rank].publish(api.kv.KVEventBatch(ts=time.time(), events=events))


def sglang_prompt():
    tokens = [random.randrange(100000) for _ in range(SIZE * random.randrange(2, 12))]
    salt = random.choice([None, None, "tenant-a"])
    cut = SIZE * random.randrange(1, len(tokens) // SIZE)
    entry = {"tokens": tokens, "salt": salt or "", "depths": [0] * ranks}
    held.append(entry)
    for rank in range(ranks):
        if random.random() < 0.5:
            continue
        head = Node(Key(tokens[:cut], salt=salt), tree_root())
        tail = Node(Key(tokens[cut:], salt=salt), head)
        recorder = recorders[rank]
        recorder.record_store(head)
        recorder.record_store(tail)
        entry["depths"][rank] = len(tokens) // SIZE
        if random.random() < 0.3:
            # Write-through to the host, then off the device: still held.
            recorder.record_store(tail, api.kv.StorageMedium.CPU)
            recorder.record_remove(tail)
        elif random.random() < 0.3:
            recorder.record_remove(tail)
            entry["depths"][rank] = cut // SIZE
        flush(rank, recorder.take())


def vllm_prompt():
    tokens = [random.randrange(100000) for _ in range(SIZE * random.randrange(2, 12))]
    entry = {"tokens": tokens, "salt": "", "depths": [0] * ranks}
    held.append(entry)
    hashes = api.chain(tokens, SIZE, SEED)
    for rank in range(ranks):
        if random.random() < 0.5:
            continue
        cut = random.randrange(1, len(hashes))
        parts = [(0, cut, None), (cut, len(hashes), hashes[cut - 1])]
        events = [api.kv.BlockStored(block_hashes=hashes[a:b], parent_block_hash=parent, token_ids=tokens[a * SIZE:b * SIZE],
                                     block_size=SIZE, lora_id=None, medium="GPU", lora_name=None, group_idx=0,
                                     kv_cache_spec_kind="full_attention") for a, b, parent in parts]
        entry["depths"][rank] = len(hashes)
        if random.random() < 0.5:
            events.append(api.kv.BlockRemoved(block_hashes=hashes[cut:], medium="GPU", group_idx=0))
            entry["depths"][rank] = cut
        flush(rank, events)


def clear(rank):
    for entry in held:
        entry["depths"][rank] = 0
    flush(rank, [api.kv.AllBlocksCleared()])


def flood(n):
    """Stores and removes n blocks on rank 0, as fast as the publisher goes."""
    for i in range(n):
        block = dict(block_hashes=[10**6 + i], parent_block_hash=None, token_ids=[1] * SIZE, block_size=SIZE, lora_id=None, medium="GPU")
        flush(0, [api.kv.BlockStored(**block)])
        flush(0, [api.kv.BlockRemoved(block_hashes=[10**6 + i], medium="GPU")])


for line in sys.stdin:
    words = line.split()
    if words[0] == "prompts":
        for _ in range(int(words[1])):
            sglang_prompt() if engine == "sglang" else vllm_prompt()
    elif words[0] == "clear":
        clear(int(words[1]))
    elif words[0] == "flood":
        flood(int(words[1]))
    elif words[0] == "load":
        snapshot = types.SimpleNamespace(
            num_running_reqs=3, num_waiting_reqs=2, num_used_tokens=1000, max_total_num_tokens=500000, num_waiting_uncached_tokens=4096,
            num_total_tokens=5096, max_running_requests=64, total_prefill_uncached_tokens=10, total_prefill_busy_us=20)
        for p in load_publishers:
            p._last_counts = None
            p.publish_load_stat(lambda: snapshot, force=True)
    while any(not p._event_queue.empty() for p in publishers):
        time.sleep(0.01)
    print(json.dumps({"prompts": held}), flush=True)
