// Runs a program built for wasip1: node .ci/wasi.mjs PROGRAM [ARGUMENT ...]. It sees the files of the system, starts in this process's folder, and
// its exit status is this process's.
import { readFile } from "node:fs/promises";
import { argv, cwd, env, exit } from "node:process";
import { WASI } from "node:wasi";

const wasi = new WASI({
  version: "preview1",
  args: argv.slice(2),
  env: { ...env, PWD: cwd() },
  preopens: { "/": "/" },
  returnOnExit: true,
});
const program = await WebAssembly.compile(await readFile(argv[2]));
exit(wasi.start(await WebAssembly.instantiate(program, wasi.getImportObject())));
