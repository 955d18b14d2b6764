"""llama.cpp's own HTTP server, as xllamacpp brings it: ``python llama_server.py MODEL.gguf PORT [CONTEXT [chat]]``.

It embeds, or with ``chat`` completes. Runs until its standard input is closed, so it never outlives the tests.
"""

import sys

import xllamacpp


def main(model: str, port: str, context: str = "512", use: str = "embeddings") -> None:
    parameters = xllamacpp.CommonParams()
    parameters.model.path = model
    parameters.embedding = use == "embeddings"
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = int(port)
    parameters.n_ctx = parameters.n_batch = parameters.n_ubatch = int(context)
    parameters.n_parallel = 1
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
    parameters.sampling.temp = 0  # unless a request says otherwise
    parameters.verbosity = 0
    server = xllamacpp.Server(parameters)
    print(server.listening_address, flush=True)  # noqa: T201  # a program's output
    sys.stdin.read()
    del server


if __name__ == "__main__":
    main(*sys.argv[1:])
