import { expect, test } from "vitest";
import { Clipboard } from "../src/clipboard.js";
import type { Clip, Input } from "../src/talk.js";
import { pasted, random } from "./fakes.js";

/** A browser that lets the page write when it likes. */
class FakeBrowser {
  isFocused = true;
  lets = true;
  /** It takes it at some time. */
  takes = true;
  free: string | undefined;
  /** What happens while it takes it. */
  meanwhile = () => {};
  readonly written: Clip[] = [];

  hasFocus(): boolean {
    return this.isFocused;
  }

  async write(clip: Clip): Promise<void> {
    expect(this.isFocused).toBe(true);
    if (!this.lets) {
      throw new DOMException("not now", "NotAllowedError");
    }
    if (!this.takes) {
      throw new DOMException("never", "DataError");
    }
    await Promise.resolve();
    this.meanwhile();
    this.written.push(clip);
  }

  async read(): Promise<string | undefined> {
    return this.free;
  }
}

function begin() {
  const browser = new FakeBrowser();
  let refused = 0;
  const clipboard = new Clipboard(browser, () => {
    refused += 1;
  });
  return { browser, clipboard, refused: () => refused };
}

function text(text: string): Clip {
  return { kind: "text", text };
}

function offered(text: string, isNew: boolean): Input {
  return { kind: "offer", clip: { kind: "text", text }, isNew };
}

test("what is copied is written at once, or with the next gesture, and never without the focus", async () => {
  const { browser, clipboard } = begin();
  await clipboard.copied(text("a"));
  expect(browser.written).toEqual([text("a")]);
  browser.lets = false;
  await clipboard.copied(text("b"));
  browser.isFocused = false;
  browser.lets = true;
  await clipboard.gesture();
  await clipboard.copied(text("c"));
  expect(browser.written).toEqual([text("a")]);
  browser.isFocused = true;
  await clipboard.gesture();
  await clipboard.gesture();
  expect(browser.written).toEqual([text("a"), text("c")]);
});

test("a paste that says nothing new is told as such", async () => {
  const { browser, clipboard } = begin();
  expect(clipboard.pasted(pasted("a"))).toEqual(offered("a", true));
  expect(clipboard.pasted(pasted("a"))).toEqual(offered("a", false));
  await clipboard.copied(text("b"));
  expect(clipboard.pasted(pasted("b"))).toEqual(offered("b", false));
  browser.lets = false;
  await clipboard.copied(text("c"));
  // What the browser has is older than what waits to be written.
  expect(clipboard.pasted(pasted("old"))).toEqual(offered("old", false));
  browser.free = "d";
  expect(await clipboard.focused()).toEqual(offered("d", false));
  browser.lets = true;
  await clipboard.gesture();
  expect(clipboard.pasted(pasted("d"))).toEqual(offered("d", true));
});

test("pictures are pasted where there is no text, and what is too large is refused", () => {
  const { clipboard, refused } = begin();
  const picture = new Blob(["png"], { type: "image/png" });
  const large = new Blob([new Uint8Array((8 << 20) + 1)], { type: "image/png" });
  const offer = { kind: "offer", clip: { kind: "picture", picture }, isNew: true };
  expect(clipboard.pasted(pasted("", new Blob([], { type: "text/html" }), picture))).toEqual(offer);
  expect(clipboard.pasted(pasted("a", picture))).toEqual(offered("a", true));
  expect([clipboard.pasted(pasted("")), refused()]).toEqual([undefined, 0]);
  expect([clipboard.pasted(pasted("", large)), refused()]).toEqual([undefined, 1]);
  expect([clipboard.pasted(pasted("é".repeat((1 << 19) + 1))), refused()]).toEqual([undefined, 2]);
  expect(clipboard.pasted(pasted("é".repeat(1 << 19)))).toBeDefined();
});

test("of what is copied the last is written in the end, and nothing twice in a row", async () => {
  for (let seed = 0; seed < 100; seed += 1) {
    const pick = random(seed);
    const { browser, clipboard } = begin();
    const going: Promise<void>[] = [];
    let last = -1;
    for (let step = 0; step < 30; step += 1) {
      [browser.isFocused, browser.lets] = [pick(3) > 0, pick(3) > 0];
      if (pick(2) === 0) {
        last = step;
        going.push(clipboard.copied(text(`${step}`)));
      } else {
        going.push(clipboard.gesture());
      }
      if (pick(2) === 0) {
        await Promise.all(going.splice(0));
      }
    }
    await Promise.all(going);
    [browser.isFocused, browser.lets] = [true, true];
    await clipboard.gesture();
    const written = browser.written.map((clip) => Number(clip.kind === "text" && clip.text));
    expect(written).toEqual([...new Set(written)].sort((one, other) => one - other));
    expect(written.at(-1) ?? -1).toBe(last);
  }
});

test("regression: a program's own picture, pasted again, replaced what it had selected", async () => {
  const { browser, clipboard } = begin();
  const picture = new Blob(["png"], { type: "image/png" });
  const again = new Blob(["png, written anew"], { type: "image/png" });
  const isNew = () => {
    const offer = clipboard.pasted(pasted("", again));
    return offer?.kind === "offer" && offer.isNew;
  };
  await clipboard.copied({ kind: "picture", picture });
  expect([isNew(), isNew()]).toEqual([false, false]);
  // Another program may have copied one meanwhile.
  clipboard.blurred();
  expect(isNew()).toBe(true);
  await clipboard.copied({ kind: "picture", picture });
  await clipboard.copied(text("a"));
  expect(isNew()).toBe(true);
  await clipboard.copied({ kind: "picture", picture });
  expect(clipboard.pasted(pasted("b"))).toEqual(offered("b", true));
  expect(isNew()).toBe(true);
  // A text that is known is so in any window.
  await clipboard.copied(text("c"));
  clipboard.blurred();
  expect(clipboard.pasted(pasted("c"))).toEqual(offered("c", false));
  // One that waits to be written is newer than what the browser has.
  clipboard.pasted(pasted("d"));
  browser.lets = false;
  await clipboard.copied({ kind: "picture", picture });
  expect(isNew()).toBe(false);
});

test("regression: a copy that the browser never took kept its texts from programs", async () => {
  const { browser, clipboard } = begin();
  browser.takes = false;
  await clipboard.copied({ kind: "picture", picture: new Blob(["no png"]) });
  expect(clipboard.pasted(pasted("a"))).toEqual(offered("a", true));
  // One that came meanwhile is tried.
  const first = clipboard.copied({ kind: "picture", picture: new Blob(["no png"]) });
  browser.takes = true;
  await Promise.all([first, clipboard.copied(text("b"))]);
  expect(browser.written).toEqual([text("b")]);
});

test("regression: a picture that was written when the focus had gone made another one the program's own", async () => {
  const { browser, clipboard } = begin();
  const picture = new Blob(["png"], { type: "image/png" });
  browser.meanwhile = () => clipboard.blurred();
  await clipboard.copied({ kind: "picture", picture });
  expect(clipboard.pasted(pasted("", picture))).toMatchObject({ kind: "offer", isNew: true });
});
