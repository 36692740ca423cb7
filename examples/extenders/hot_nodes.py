"""An HTTP extender in thirty lines: it rejects hot nodes, prefers cool ones, and fails if its sensor does.

Run ``python examples/extenders/hot_nodes.py [PORT]`` during ``bayplan simulate --config
examples/extenders/scheduler.yaml``.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

CELSIUS = {"cellar": 12, "attic": 38, "kitchen": 71, "furnace": 240}
HOT, MELTING = 60, 200


class HotNodes(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        names = {name: CELSIUS.get(name, 20) for name in asked["NodeNames"]}
        if asked["Pod"]["metadata"].get("labels", {}).get("sensor") == "broken":
            answer: object = {"Error": "the temperature sensor is broken"}
        elif self.path == "/filter":
            failed = {name: f"node(s) were too hot: {celsius} C" for name, celsius in names.items() if celsius > HOT}
            final = {name: "node(s) were melting" for name, celsius in names.items() if celsius > MELTING}
            left = [name for name in names if name not in failed]
            answer = {"NodeNames": left, "FailedNodes": failed, "FailedAndUnresolvableNodes": final}
        else:  # /prioritize: one point less for every 5 degrees
            answer = [{"Host": name, "Score": max(10 - celsius // 5, 0)} for name, celsius in names.items()]
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    HTTPServer(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 8888), HotNodes).serve_forever()
