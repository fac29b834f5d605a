/** What the page tells its user when there is nothing to be seen, and what can be done. */

import type { State } from "./talk.js";

/** See the module. */
export interface Notice {
  readonly title: string;
  readonly text: string;
  /** Nothing more is shown. */
  readonly isEnd: boolean;
}

/** What is to be told in a state; nothing where all is well. */
export function noticeOf(state: State): Notice | undefined {
  const told = NOTICES[state];
  return told && { title: told[0], text: told[1], isEnd: true };
}

const NOTICES: Partial<Record<State, readonly [string, string]>> = {
  "no link": [
    "This link is not complete",
    "It ends in a ticket that begins with wf1:. Copy the whole link, or ask for another one.",
  ],
  "no transport": [
    "This browser cannot show it",
    "It has no WebTransport, or the page did not come from localhost or over HTTPS. Chromium and Firefox have it.",
  ],
  unreachable: [
    "The session does not answer",
    "It may have ended, its certificate may be older than 13 days, or a firewall keeps UDP away. Ask for another link.",
  ],
  refused: [
    "This link is not good any more",
    "A link can be used once, and for some time only. Ask the person who shares the session for another one.",
  ],
  full: ["There are as many viewers as there may be", "Try again when one of them has left."],
  incompatible: [
    "The page and the session do not fit",
    "They are of different versions of Wayferry. Open the link with the version that the session has.",
  ],
  done: ["The session is over", "It has ended, or does not let others look on any more."],
  lost: ["The connection was lost", "Ask for another link to look on again."],
  broken: [
    "Something went wrong",
    "The page and the session do not understand each other. Ask for another link; if it happens again, it is a fault of Wayferry.",
  ],
};
