import { InvalidArgumentError } from 'commander';
import type { Enter } from './register-command.js';
import { repeated } from './repeated-options.js';

/** Commands by which people talk to a run and steer it. */
export function registerTalk(enter: Enter): void {
  enter(
    'send <id> <message...>',
    'give a run a message, and follow the turn that answers it',
    async () => (await import('./commands/send.js')).send,
  )
    .option('--steer', 'join the turn under way, before its next model call')
    .option('--message-id <id>', 'sent again with the same id, it is the same message')
    .option('--pin', 'keep it word for word when older messages are summarized')
    .option('--refresh', 'take the agent as the workers have it now, before the turn begins')
    .option(
      '--attach <file|url>',
      'an image or a PDF that goes along with it, or the address of an image; may be repeated',
      repeated,
    )
    .option(
      '--no-wait',
      'give it to a worker elsewhere and leave; without one it is recorded for a worker that comes',
    );
  enter(
    'fork <run> <message...>',
    'start a run that begins with the messages of this one, and follow it',
    async () => (await import('./commands/fork.js')).fork,
  )
    .option('--at <n>', 'first message that is not taken; default: all are', number)
    .option(
      '--id <id>',
      'workflow id of the new run; default: the agent, the date and a random end',
    )
    .option('--open', 'let it wait for more messages after each answer; see send and close')
    .option('--no-wait', 'leave when the run waits for a person (exit 3) or is blocked (exit 4)');
  enter(
    'pause <id>',
    'let what is in flight end, and start nothing more',
    async () => (await import('./commands/pause.js')).pause,
  );
  enter(
    'resume <id>',
    'let a paused run go on, and a blocked one try again at once',
    async () => (await import('./commands/resume.js')).resume,
  );
  enter(
    'close <id>',
    'end an open run when it is done with the messages that it has',
    async () => (await import('./commands/close.js')).close,
  );
  enter(
    'cancel <id>',
    'end a run; what it has done so far is kept',
    async () => (await import('./commands/cancel.js')).cancel,
  )
    .option('--turn', 'end only the turn under way; an open run lives on')
    .option('--no-wait', 'ask for it and leave');
  enter(
    'limits <id>',
    'show the limits of a run, or change those that you name (a number, or none)',
    async () => (await import('./commands/limits.js')).limits,
  )
    .option('--steps <n>', 'model calls', limit)
    .option('--tool-calls <n>', 'executed calls of tools', limit)
    .option('--tokens <n>', 'tokens in and out', limit)
    .option('--cost-usd <n>', 'US dollars', limit)
    .option('--wall-ms <n>', 'milliseconds', limit)
    .option('--depth <n>', 'agents that call agents', limit)
    .option('--run', 'for the whole run; default: for each turn');
}

/** A number, or null for none. */
function limit(text: string): number | null {
  if (text === 'none') return null;
  const value = Number(text);
  if (text.trim() !== '' && Number.isFinite(value)) return value;
  throw new InvalidArgumentError('Give a number, or none.');
}

function number(text: string): number {
  const value = Number(text);
  if (text.trim() !== '' && Number.isFinite(value)) return value;
  throw new InvalidArgumentError('Give a number.');
}
