// Runs the checks of the module that `src/` becomes: `node run.mjs MODULE`. The first that fails ends it with 1.
import { readFile } from "node:fs/promises";
import process from "node:process";

const [path] = process.argv.slice(2);
let last = "";

const host = {
  tell(start, length) {
    last = new TextDecoder().decode(new Uint8Array(instance.exports.memory.buffer, start, length));
  },
};

const module = await WebAssembly.compile(await readFile(path));
const instance = await WebAssembly.instantiate(module, { host });
let number = 0;
try {
  while (instance.exports.check(number) !== 0) {
    number += 1;
  }
} catch (error) {
  console.error(`error: ${last} (${error})`);
  process.exit(1);
}
if (number === 0) {
  console.error("error: there are no checks");
  process.exit(1);
}
console.log(`wasm: ${number} checks passed`);
