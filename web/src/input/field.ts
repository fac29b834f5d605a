/**
 * The field that has the focus while a session's window has it: keys, and text that no key is told for.
 *
 * Text comes from input methods, dead keys and on-screen keyboards. The field is seen only while an input method joins
 * characters. Invariant: it holds nothing but {@link FILLING} between two of its events.
 */

import type { Pasted } from "../clipboard.js";
import type { Input } from "../talk.js";
import type { Keyboard } from "./keyboard.js";

/** What the field asks of the page. */
export interface Wishes {
  /** The user asks for the page's own controls. */
  exit(): void;
  /** The key that comes next makes the browser paste. */
  pastes(): void;
  /** It does, or does so by itself. */
  pasted(pasted: Pasted): void;
}

/** See the module. */
export class Field {
  readonly #area: HTMLTextAreaElement;
  readonly #keyboard: Keyboard;
  readonly #tell: (input: Input) => void;
  readonly #wishes: Wishes;

  constructor(area: HTMLTextAreaElement, keyboard: Keyboard, tell: (input: Input) => void, wishes: Wishes) {
    [this.#area, this.#keyboard, this.#tell, this.#wishes] = [area, keyboard, tell, wishes];
    area.value = FILLING;
    area.addEventListener("keydown", (event) => this.#down(event));
    area.addEventListener("keyup", (event) => this.#up(event));
    area.addEventListener("beforeinput", (event) => this.#beforeInput(event));
    area.addEventListener("paste", (event) => this.#paste(event));
    area.addEventListener("compositionstart", () => this.#compose(true));
    area.addEventListener("compositionend", (event) => this.#composed(event));
    area.addEventListener("input", () => this.#empty());
    area.addEventListener("blur", () => this.#keyboard.blur());
  }

  /** Takes the focus; an on-screen keyboard comes up only if it is wanted. */
  focus(): void {
    this.#area.focus({ preventScroll: true });
  }

  /** Shows or hides the on-screen keyboard, where there is one; says whether it is to be seen. */
  toggleKeyboard(): boolean {
    const isWanted = this.#area.inputMode === "none";
    this.#area.inputMode = isWanted ? "text" : "none";
    // A field that has the focus already brings up nothing.
    this.#area.blur();
    this.focus();
    return isWanted;
  }

  /** Where the windows of input methods are to be. */
  move(x: number, y: number): void {
    this.#area.style.left = `${x}px`;
    this.#area.style.top = `${y}px`;
  }

  #down(event: KeyboardEvent): void {
    const pastes = this.#keyboard.pastes(event);
    if (pastes) {
      this.#wishes.pastes();
    }
    const outcome = this.#keyboard.down(event);
    // The browser says what it would paste only where it may.
    if (outcome !== "left" && !pastes) {
      event.preventDefault();
    }
    if (outcome === "exit") {
      this.#wishes.exit();
    }
  }

  #up(event: KeyboardEvent): void {
    this.#keyboard.up(event);
    // Alt alone would open a browser's menu.
    event.preventDefault();
  }

  #paste(event: ClipboardEvent): void {
    event.preventDefault();
    if (event.clipboardData !== null) {
      this.#wishes.pasted(event.clipboardData);
    }
  }

  #beforeInput(event: InputEvent): void {
    // What an input method is about is told when it is done.
    if (event.isComposing || event.inputType.includes("Composition")) {
      return;
    }
    event.preventDefault();
    const key = KEYS[event.inputType];
    if (key !== undefined) {
      this.#keyboard.tap(key);
    } else if (TEXTS.includes(event.inputType)) {
      this.#type(event.data ?? event.dataTransfer?.getData("text/plain") ?? "");
    }
  }

  #composed(event: CompositionEvent): void {
    this.#compose(false);
    this.#type(event.data);
    this.#empty();
  }

  #type(text: string): void {
    for (const piece of piecesOf(text)) {
      this.#tell({ kind: "type", text: piece });
    }
  }

  #compose(isComposing: boolean): void {
    this.#area.classList.toggle("composing", isComposing);
  }

  /** On-screen keyboards say nothing of Backspace in an empty field. */
  #empty(): void {
    if (!this.#area.classList.contains("composing")) {
      this.#area.value = FILLING;
      this.#area.setSelectionRange(FILLING.length, FILLING.length);
    }
  }
}

/** Pieces of a text that are no longer than may be told at once, each of whole characters. */
function* piecesOf(text: string): Generator<string> {
  let piece = "";
  for (const character of text) {
    if (piece.length + character.length > MOST_TEXT) {
      yield piece;
      piece = "";
    }
    piece += character;
  }
  if (piece !== "") {
    yield piece;
  }
}

const FILLING = "\u200b";
/** UTF-16 units of text at once. */
const MOST_TEXT = 1024;
const TEXTS = ["insertText", "insertReplacementText"];
/** What is done to a field, and the key that does it. */
const KEYS: Record<string, string> = {
  insertLineBreak: "Enter",
  insertParagraph: "Enter",
  deleteContentBackward: "Backspace",
  deleteWordBackward: "Backspace",
  deleteContentForward: "Delete",
};
