import type { Command as Entry } from 'commander';
import type { Command } from './command.js';

/** Enters a command into the program: how it is called, what it does, and the module that does it. */
export type Enter = (
  usage: string,
  description: string,
  load: () => Promise<Command<never>>,
) => Entry;
