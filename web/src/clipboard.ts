/**
 * The browser's clipboard beside the session's.
 *
 * What a program copies is written as soon as the browser lets the page, which may be with the next key or click. What
 * is pasted is offered to programs. Invariants: nothing is written while the page has not the focus; of two copies the
 * later one stays.
 */

import type { Clip, Input } from "./talk.js";

/** What is used of a browser. */
export interface Browser {
  hasFocus(): boolean;
  /** Fails with a `NotAllowedError` where the user has to do something first. */
  write(clip: Clip): Promise<void>;
  /** Its text, where it may be read without asking anybody. */
  read(): Promise<string | undefined>;
}

/** What is used of a `DataTransfer`. */
export interface Pasted {
  getData(kind: string): string;
  readonly files: Iterable<Blob>;
}

/** See the module. */
export class Clipboard {
  readonly #browser: Browser;
  readonly #onTooLarge: () => void;
  /** What is to be written. */
  #copied: Clip | undefined;
  #isWriting = false;
  /** What the browser was known to have last: a text, or a picture that was copied here. */
  #known: string | typeof OURS | undefined;
  /** How often the page has lost the focus. */
  #blurs = 0;

  /** `onTooLarge` is called when there is more to paste than may be. */
  constructor(browser: Browser, onTooLarge: () => void) {
    [this.#browser, this.#onTooLarge] = [browser, onTooLarge];
  }

  /** A program has copied something. */
  copied(clip: Clip): Promise<void> {
    this.#copied = clip;
    return this.#write();
  }

  /** The user has pressed something. */
  gesture(): Promise<void> {
    return this.#write();
  }

  /** What programs are to be offered of what the user pastes. */
  pasted(pasted: Pasted): Input | undefined {
    // As programs here have it.
    const text = pasted.getData("text/plain").replaceAll("\r\n", "\n");
    if (text !== "") {
      return this.#offer(text);
    }
    const picture = [...pasted.files].find(({ type }) => type === PICTURE);
    if (picture === undefined || picture.size > MOST_PICTURE) {
      return picture && this.#refuse();
    }
    const isOurs = this.#known === OURS;
    this.#known = isOurs ? OURS : undefined;
    const isNew = !isOurs && this.#copied === undefined;
    return { kind: "offer", clip: { kind: "picture", picture }, isNew };
  }

  /** The page has the focus: what it may know of the clipboard it offers. */
  async focused(): Promise<Input | undefined> {
    const text = (await this.#browser.read())?.replaceAll("\r\n", "\n") ?? "";
    return text === "" || sizeOf(text) > MOST_TEXT ? undefined : this.#offer(text);
  }

  /** Others may copy from now on: a picture of ours cannot be told from theirs, for browsers write it anew. */
  blurred(): void {
    this.#blurs += 1;
    this.#known = this.#known === OURS ? undefined : this.#known;
  }

  #offer(text: string): Input | undefined {
    if (sizeOf(text) > MOST_TEXT) {
      return this.#refuse();
    }
    // What waits to be written is newer.
    const isNew = text !== this.#known && this.#copied === undefined;
    this.#known = text;
    return { kind: "offer", clip: { kind: "text", text }, isNew };
  }

  #refuse(): undefined {
    this.#onTooLarge();
  }

  async #write(): Promise<void> {
    const clip = this.#copied;
    if (clip === undefined || this.#isWriting || !this.#browser.hasFocus()) {
      return;
    }
    this.#isWriting = true;
    const blurs = this.#blurs;
    const fate = await this.#browser.write(clip).then(() => "written" as const, fateOf);
    this.#isWriting = false;
    if (fate === "written") {
      const ours = this.#blurs === blurs ? OURS : undefined;
      this.#known = clip.kind === "text" ? clip.text : ours;
    }
    if (this.#copied !== clip) {
      return this.#write();
    }
    if (fate !== "waits") {
      this.#copied = undefined;
    }
  }
}

/** That of this page. */
export const BROWSER: Browser = {
  hasFocus: () => document.hasFocus(),
  async write(clip) {
    if (clip.kind === "text") {
      await navigator.clipboard.writeText(clip.text);
    } else {
      await navigator.clipboard.write([new ClipboardItem({ [PICTURE]: clip.picture })]);
    }
  },
  async read() {
    // Not all browsers know that name, and those that do not would ask.
    const name = "clipboard-read" as PermissionName;
    const permission = await navigator.permissions.query({ name }).catch(() => undefined);
    const isFree = permission?.state === "granted" && document.hasFocus();
    return isFree ? navigator.clipboard.readText().catch(() => undefined) : undefined;
  },
};

/** What becomes of what a browser did not take: with any other fault than this one it never will. */
function fateOf(fault: unknown): "waits" | "dropped" {
  return fault instanceof DOMException && fault.name === "NotAllowedError" ? "waits" : "dropped";
}

/** Bytes of a text, at least; exactly if it may be short enough. */
function sizeOf(text: string): number {
  return text.length > MOST_TEXT ? text.length : new TextEncoder().encode(text).length;
}

const PICTURE = "image/png";
const OURS = Symbol(PICTURE);
/** Bytes that are offered, as the viewer takes them. */
const MOST_TEXT = 1 << 20;
const MOST_PICTURE = 8 << 20;
