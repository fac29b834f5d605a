/** What the page tells its user when there is nothing to be seen, and what can be done. */

import type { State } from "./talk.js";

/** See the module. */
export interface Notice {
  readonly title: string;
  readonly text: string;
  /** What can be done, where there are several ways. */
  readonly ways: readonly string[];
  /** The same link may work when it is tried again. */
  readonly canRetry: boolean;
}

/** What is to be told in a state; nothing where all is well. */
export function noticeOf(state: State): Notice | undefined {
  const told = NOTICES[state];
  if (told === undefined) {
    return undefined;
  }
  const [title, text, ...ways] = told;
  return { title, text, ways, canRetry: MAY_RETRY.includes(state) };
}

/** In these no session was ever begun. */
const MAY_RETRY: readonly State[] = ["unserved", "no transport", "unreachable"];

const NOTICES: Partial<Record<State, readonly [string, string, ...string[]]>> = {
  insecure: [
    "Browsers do not trust this address",
    "WebTransport works only where the page comes from this computer or over HTTPS, not from an http:// address of the network. There are two ways:",
    "Open the page from localhost: serve it on this computer, or forward its port with ssh -L.",
    "Serve the page over HTTPS, with a certificate that this browser trusts.",
  ],
  unserved: [
    "The page is served no more",
    "It came, and a part of it did not: the network in between is gone, or the person who shares the session has ended that. Ask whether this link is still good.",
  ],
  "no link": [
    "This link is not complete",
    "It ends in a ticket that begins with wf1:. Copy the whole link, or ask for another one.",
  ],
  "no transport": [
    "This browser cannot show it",
    "It has no WebTransport, and who serves the page has no other way to the session. Chrome, Edge and other browsers made from Chromium have WebTransport from version 100 on, Firefox from version 125 on. Open the link in one of them.",
  ],
  unreachable: [
    "The session does not answer",
    "Nothing was heard from the addresses in this link. It may be one of these:",
    "A firewall keeps UDP away, here or there, and who serves the page has no other way to the session.",
    "The session has ended, or its computer is off or in another network.",
    "Another session answers there: its certificate is not the one in the link, so the browser refuses it.",
    "The link was over long ago. Ask for another one.",
  ],
  refused: [
    "This link is not good any more",
    "It was used as often as it may be, its time is over, or it was taken back. Ask the person who shares the session for another one.",
  ],
  full: ["There are as many viewers as there may be", "Ask for another link when one of them has left."],
  incompatible: [
    "The page and the session do not fit",
    "They are of different versions of Wayferry. Open the link with the version that the session has.",
  ],
  done: [
    "The session is over",
    "It has ended, or its owner has sent you away. To see what runs there next, ask for another link.",
  ],
  taken: [
    "Another display has the session now",
    "Its programs go on there, and nothing is lost. To have them here again, ask for another link and open it.",
  ],
  forgotten: [
    "The session goes on without this page",
    "While the connection was gone, another display took the session, the link was taken back, or this page was sent away. Ask for another link.",
  ],
  revoked: [
    "Your link was taken back",
    "The person who shares the session does not let you see it any more. Its programs go on. If that was a mistake, ask for another link.",
  ],
  lost: [
    "The connection was lost",
    "Nothing is heard of the session's computer: it is off, or the network in between is gone. Once it is back, ask for another link.",
  ],
  broken: [
    "Something went wrong",
    "The page and the session do not understand each other. Ask for another link; if it happens again, it is a fault of Wayferry.",
  ],
};
