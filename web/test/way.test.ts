import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Ticket } from "../src/ticket.js";
import { type Browser, connect, firstWay } from "../src/way.js";
import { FakeLine } from "./line.js";

/** An attempt at one place. */
class FakeTransport {
  readonly closed = new Promise<never>(() => undefined);
  readonly ready: Promise<void>;
  closes = 0;
  answer!: () => void;
  fail!: () => void;

  constructor() {
    this.ready = new Promise((done, fail) => {
      this.answer = done;
      this.fail = () => fail(new Error("no answer"));
    });
  }

  close(): void {
    this.closes += 1;
  }
}

class FakeBrowser implements Browser {
  readonly origin: string = "http://localhost:8000";
  readonly transports = new Map<string, FakeTransport>();
  readonly lines: { address: string; line: FakeLine }[] = [];
  transport: Browser["transport"] = (address) => {
    const made = new FakeTransport();
    this.transports.set(address, made);
    return made as unknown as WebTransport;
  };

  line(address: string): FakeLine {
    const line = new FakeLine();
    this.lines.push({ address, line });
    return line;
  }
}

const TICKET: Ticket = {
  secret: new Uint8Array(48),
  certificate: new Uint8Array(32),
  places: ["192.0.2.1:5", "[2001:db8:0:0:0:0:0:1]:5"],
};

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] }));
afterEach(() => void vi.useRealTimers());

/** Lets what is due happen, digests included, which no timer waits for. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) {
    await new Promise((done) => setImmediate(done));
  }
}

/** The line that is opened. */
async function lineOf(browser: FakeBrowser): Promise<FakeLine> {
  for (;;) {
    const line = browser.lines[0]?.line;
    if (line !== undefined) {
      return line;
    }
    await new Promise((done) => setImmediate(done));
  }
}

/** Has the session be behind this line. */
async function answer(line: FakeLine): Promise<void> {
  line.onopen?.();
  const number = line.sent[0]?.slice(32) ?? [];
  const text = new TextEncoder();
  const said = [...text.encode("wayferry socket 1 server\n"), ...number, ...text.encode("wf1:abc")];
  line.hear(...new Uint8Array(await crypto.subtle.digest("SHA-256", new Uint8Array(said))));
}

test("the first place that answers wins, and the others are closed when they do", async () => {
  const browser = new FakeBrowser();
  const way = connect(TICKET, "wf1:abc", browser);
  const [first, second] = [...browser.transports.values()];
  expect([...browser.transports.keys()][0]).toBe("https://192.0.2.1:5/wayferry/1");
  second?.answer();
  expect(await way).toEqual({ kind: "streams", transport: second });
  first?.answer();
  vi.advanceTimersByTime(5000);
  await settle();
  expect([first?.closes, second?.closes, browser.lines]).toEqual([1, 0, []]);
});

test("a WebSocket is tried, too, where no place has answered for a while", async () => {
  const browser = new FakeBrowser();
  const way = connect(TICKET, "wf1:abc", browser);
  vi.advanceTimersByTime(1999);
  await settle();
  expect(browser.lines).toEqual([]);
  vi.advanceTimersByTime(1);
  const line = await lineOf(browser);
  expect(browser.lines[0]?.address).toBe("ws://localhost:8000/wayferry/1");
  await answer(line);
  expect(await way).toMatchObject({ kind: "socket", opened: { line } });
  const late = [...browser.transports.values()];
  late[0]?.answer();
  await settle();
  expect([late[0]?.closes, line.closes]).toEqual([1, 0]);
});

test("a place that answers before the WebSocket's session does wins, and that is closed", async () => {
  const browser = new FakeBrowser();
  const way = connect(TICKET, "wf1:abc", browser);
  vi.advanceTimersByTime(2000);
  const line = await lineOf(browser);
  const [transport] = [...browser.transports.values()];
  transport?.answer();
  expect(await way).toEqual({ kind: "streams", transport });
  await answer(line);
  await settle();
  expect(line.closes).toBe(1);
});

test("where all places have failed, or there is no WebTransport, no page waits", async () => {
  const [failing, without] = [new FakeBrowser(), new FakeBrowser()];
  without.transport = undefined;
  const ways = [failing, without].map((browser) => connect(TICKET, "wf1:abc", browser));
  for (const transport of failing.transports.values()) {
    transport.fail();
  }
  for (const browser of [failing, without]) {
    await answer(await lineOf(browser));
  }
  expect((await Promise.all(ways)).map((way) => way?.kind)).toEqual(["socket", "socket"]);
});

test("where nothing answers there is no way", async () => {
  const browser = new FakeBrowser();
  const way = connect(TICKET, "wf1:abc", browser);
  for (const transport of browser.transports.values()) {
    transport.fail();
  }
  (await lineOf(browser)).onclose?.();
  expect(await way).toBeUndefined();
});

test("a page over HTTPS has its WebSocket in TLS", async () => {
  const browser = new (class extends FakeBrowser {
    override readonly origin = "https://page.example.org:8443";
  })();
  browser.transport = undefined;
  const way = connect(TICKET, "wf1:abc", browser);
  const line = await lineOf(browser);
  expect(browser.lines[0]?.address).toBe("wss://page.example.org:8443/wayferry/1");
  line.onclose?.();
  expect(await way).toBeUndefined();
});

test("regression: a first visit that found all places taken for a moment never came in", async () => {
  const way = { kind: "streams", transport: new FakeTransport() as unknown as WebTransport } as const;
  let asked = 0;
  const found = firstWay(async () => {
    asked += 1;
    return asked === 3 ? way : undefined;
  });
  await vi.advanceTimersByTimeAsync(1999);
  expect(asked).toBe(2);
  await vi.advanceTimersByTimeAsync(1);
  expect([await found, asked]).toEqual([way, 3]);
});

test("a first visit where nothing answers comes to an end", async () => {
  const found = firstWay(async () => undefined);
  await vi.advanceTimersByTimeAsync(30_000);
  expect(await found).toBeUndefined();
});
