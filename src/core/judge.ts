import { end, prune, say, withTurn } from './change.js';
import { completed, failed } from './ends.js';
import { repairText } from './text/repair-text.js';
import { spoken, type ParsedAnswer, type RecordedReply } from './reply.js';
import type { RunState } from './state.js';

/** Answers in all that a turn may give, where its agent does not say. */
export const ATTEMPTS = 10;

/**
 * An answer under contract: it ends the turn when it keeps to it. Else it opens, or goes on with, a
 * side branch in which the model is told what is wrong, as often as `attempts` allows.
 */
export function judge(
  state: RunState,
  { reply, parsed, at }: { reply: RecordedReply; parsed: ParsedAnswer; at: number },
): RunState {
  const { attempts = ATTEMPTS } = state.config.definition;
  const refused = (state.turn.refusedAnswers ?? 0) + (parsed.ok ? 0 : 1);
  const counted = withTurn(state, { refusedAnswers: refused });
  if (parsed.ok || refused >= attempts) return accept(counted, { reply, parsed, at });
  const opened = openBranch(counted);
  const answered = say(opened, at, { ...spoken(reply), side: true });
  const text = repairText(parsed.problem, { attempt: refused, attempts });
  return say(answered, at, { role: 'user', text, origin: 'perdure', side: true });
}

function openBranch(state: RunState): RunState {
  if (state.turn.branch) return state;
  const { transcript, compaction } = state;
  const { head, tokens } = transcript;
  const { promptTokens } = compaction;
  const branch = { messages: transcript.messages.length, head, tokens, promptTokens };
  return withTurn(state, { branch });
}

/** The last answer becomes part of the transcript; the side branch before it does not. */
function accept(
  state: RunState,
  { reply, parsed, at }: { reply: RecordedReply; parsed: ParsedAnswer; at: number },
): RunState {
  const { text, blob } = reply;
  const said = say(prune(state), at, spoken(reply));
  const answer = { reason: 'answer', answer: text, blob } as const;
  if (parsed.ok) return end(said, completed(said, { ...answer, output: parsed.output }));
  if (state.config.definition.onInvalid === 'best_effort') {
    const outcome = completed(said, { ...answer, output: parsed.output });
    return end(said, { ...outcome, issues: [parsed.problem] });
  }
  const message = `no answer kept to the contract: ${parsed.problem}`;
  return end(said, failed(said, { reason: 'invalid_output', message, answer: text }));
}
