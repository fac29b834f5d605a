/** What the page runs. */

import { start } from "./page.js";

start();
