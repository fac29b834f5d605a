/** What is to be done later; tests have a clock of their own. */
export interface Timers {
  /** Does it after so many milliseconds; gives what {@link clear} takes. */
  set(act: () => void, after: number): number;
  clear(timer: number | undefined): void;
}

/** Those of the page, and of its worker. */
export const TIMERS: Timers = {
  set: (act, after) => self.setTimeout(act, after),
  clear: (timer) => self.clearTimeout(timer),
};
