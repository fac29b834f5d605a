/**
 * The page's sound: a button, and the browser's way to play.
 *
 * Browsers let a page play once its user has done something there, so sound begins with the first click or key; who
 * has turned it off is asked again by nothing. Invariant: the worker listens exactly while the browser plays.
 */

import type { Order } from "../talk.js";
import { press } from "../toggles.js";

/** See the module. */
export class Sound {
  readonly #button: HTMLElement;
  readonly #order: (order: Order, moved: Transferable[]) => void;
  #context: AudioContext | undefined;
  #loudspeaker: AudioWorkletNode | undefined;
  /** The user has not turned it off. */
  #isWanted = true;
  #isOn = false;

  constructor(button: HTMLElement, order: (order: Order, moved: Transferable[]) => void) {
    this.#button = button;
    this.#order = order;
    button.addEventListener("click", () => {
      this.#isWanted = !this.#isOn;
      this.#settle();
    });
    for (const kind of ["pointerdown", "pointerup", "keydown"]) {
      const begin = ({ target }: Event) => button.contains(target as Node) || this.#settle();
      addEventListener(kind, begin, { capture: true, passive: true });
    }
  }

  /** There is a session with sound, and a worker for it; or there is none. */
  offer(hasSound: boolean): void {
    this.#button.hidden = !hasSound;
    this.#isOn = false;
    press(this.#button, false);
    if (navigator.userActivation?.hasBeenActive || !hasSound) {
      this.#settle();
    }
  }

  /** Tells how long it takes until what is played is heard: browsers know it better with time. */
  measure(): void {
    const { baseLatency = 0, outputLatency = 0 } = this.#context ?? {};
    if (this.#isOn) {
      this.#order({ kind: "latency", latency: 1000 * (baseLatency + outputLatency) }, []);
    }
  }

  /** Makes the browser play or not, as is wanted. */
  #settle(): void {
    const isWanted = this.#isWanted && !this.#button.hidden;
    if (isWanted && this.#context === undefined) {
      this.#make().catch(() => this.offer(false));
    }
    const done = isWanted ? this.#context?.resume() : this.#context?.suspend();
    // Where it may not play, it is asked again after the next key or click.
    done?.catch(() => undefined);
    this.#tell();
  }

  async #make(): Promise<void> {
    const context = new AudioContext({ sampleRate: 48_000, latencyHint: "interactive" });
    this.#context = context;
    context.addEventListener("statechange", () => this.#tell());
    await context.audioWorklet.addModule("loudspeaker.js");
    const options = { numberOfInputs: 0, outputChannelCount: [2] };
    this.#loudspeaker = new AudioWorkletNode(context, "loudspeaker", options);
    this.#loudspeaker.connect(context.destination);
    this.#tell();
  }

  /** Tells the worker when it is on, and when it is off. */
  #tell(): void {
    const isRunning = this.#context?.state === "running" && this.#loudspeaker !== undefined;
    const isOn = isRunning && this.#isWanted && !this.#button.hidden;
    if (isOn === this.#isOn) {
      return;
    }
    this.#isOn = isOn;
    press(this.#button, isOn);
    if (isOn) {
      const { port1, port2 } = new MessageChannel();
      this.#loudspeaker?.port.postMessage(port2, [port2]);
      this.#order({ kind: "listen", port: port1 }, [port1]);
      this.measure();
    } else {
      this.#order({ kind: "listen", port: undefined }, []);
    }
  }
}
