import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Input, Order } from "../src/talk.js";
import { FakeLine } from "./line.js";

vi.mock("../src/ticket.js", () => ({ readTicket: async () => ({ secret: new Uint8Array(48) }) }));
vi.mock("../src/way.js", () => {
  const opened = { line: new FakeLine(), heard: [], isOver: false };
  const firstWay = async () => ({ kind: "socket", opened });
  return { firstWay, connect: async () => undefined, thisBrowser: () => ({}), close: () => undefined };
});

/** What the module was told, and the numbers of what it says next. */
let log: string[];
let notices: number[];

/** The module: most of it has nothing to say. */
function fakeExports(): object {
  const known: Record<string, unknown> = {
    memory: { buffer: new ArrayBuffer(1 << 16) },
    next_timeout: () => -1,
    round_trip: () => -1,
    loss: () => -1,
    poll_notice: () => notices.shift() ?? 0,
  };
  const noting = (name: string) => {
    return (_now: number, ...numbers: number[]) => {
      log.push([name, ...numbers].join(" "));
      return 0;
    };
  };
  return new Proxy(known, { get: (_, name: string) => known[name] ?? noting(name) });
}

beforeEach(async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  [log, notices] = [[], []];
  vi.spyOn(WebAssembly, "instantiate").mockResolvedValue({
    instance: { exports: fakeExports() },
  } as never);
  vi.stubGlobal("postMessage", () => undefined);
  vi.stubGlobal("requestAnimationFrame", () => undefined);
  vi.stubGlobal("onmessage", undefined);
  vi.stubGlobal("self", globalThis);
  vi.resetModules();
  await import("../src/worker.js");
});

afterEach(() => {
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
  vi.useRealTimers();
});

async function order(data: Order): Promise<void> {
  onmessage?.call(globalThis as never, { data } as MessageEvent<Order>);
  for (let turn = 0; turn < 20; turn += 1) {
    await Promise.resolve();
  }
}

async function begin(): Promise<void> {
  await order({ kind: "begin", module: new ArrayBuffer(0), link: { control: true, ticket: "" } });
}

/** What of these the module was told since the last call. */
function told(...names: string[]): string[] {
  return log.splice(0).filter((call) => names.includes(call.split(" ")[0] ?? ""));
}

test("regression: a picture that could not be read ended the page", async () => {
  let isThere = false;
  vi.stubGlobal("FileReaderSync", function (this: object) {
    const readAsArrayBuffer = () => {
      if (!isThere) {
        throw new DOMException("the file is gone", "NotFoundError");
      }
      return new ArrayBuffer(3);
    };
    Object.assign(this, { readAsArrayBuffer });
  });
  await begin();
  const offer: Input = { kind: "offer", clip: { kind: "picture", picture: new Blob() }, isNew: true };
  const key: Input = { kind: "key", code: 47, level: 0, text: "v", pressed: true };
  for (const input of [offer, key]) {
    await order({ kind: "input", input });
  }
  expect(told("offer", "key")).toEqual(["key 47 0 1"]);
  isThere = true;
  await order({ kind: "input", input: offer });
  expect(told("offer", "key")).toEqual(["offer 1 1"]);
});

test("regression: a link that was found again was told of modifiers of before the focus was lost", async () => {
  await begin();
  const tell = async (input: Input) => order({ kind: "input", input });
  const [welcome, away] = [1, 3];
  notices.push(welcome);
  await tell({ kind: "modifiers", bits: 8 });
  notices.push(away);
  expect(told("modifiers")).toEqual(["modifiers 8"]);
  // What is on when the link is lost is told again.
  await tell({ kind: "leave" });
  expect(told("modifiers")).toEqual(["modifiers 8"]);
  for (const notice of [welcome, away]) {
    await tell({ kind: "blur" });
    notices.push(notice);
    await tell({ kind: "leave" });
  }
  expect(told("modifiers")).toEqual([]);
});
