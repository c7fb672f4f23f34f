import { visible, visibleMessage } from '../../core/state/summaries.js';
import { formatDuration, printable, show } from '../../core/text/text.js';
import type { GateResult } from '../../recordings/eval-gates.js';
import type {
  CandidateRun,
  EvalProgress,
  EvalRun,
  EvaluatedCase,
  Evaluation,
} from '../../recordings/evaluate.js';
import { columns, formatCount, formatUsage } from '../format/format.js';

const ANSWER_CHARACTERS = 60;
const UNTIMELY = 'interrupted before the last run';

/** One line about a run that is over: `[3/12] desk-17: same calls, polite 1`. */
export function progressLine({ name, done, total, run }: EvalProgress): string {
  return `[${done}/${total}] ${visible(name)}: ${runText(run)}`;
}

function runText({ run, error, scores }: CandidateRun): string {
  const scored = Object.entries(scores).map(
    ([name, { score }]) => `${visible(name)} ${number(score)}`,
  );
  const ends = [
    error === null ? null : `error: ${visibleMessage(error)}`,
    run && endOf(run),
    ...scored,
  ];
  return ends.filter((each) => each !== null).join(', ');
}

function endOf({ outcome, divergence }: EvalRun): string {
  if (divergence !== null) return `differs: ${visible(divergence.text)}`;
  return outcome === null ? 'has no outcome' : `${outcome.status} (${outcome.reason})`;
}

/** The cases side by side, and the gates. */
export function evalLines(
  { cases, gates, passed, finished }: Evaluation,
  model: string,
): readonly string[] {
  const verdict = passed ? 'passed' : 'failed';
  return [
    ...cases.flatMap((one) => [visible(one.name), ...caseLines(one, model), '']),
    ...columns(gates.map(gateRow)),
    `${formatCount(cases.length, 'case')} with ${visible(model)}: ${finished ? verdict : UNTIMELY}`,
  ];
}

function caseLines(
  { recorded, replayed, candidates }: EvaluatedCase,
  model: string,
): readonly string[] {
  const many = candidates.length > 1;
  const sides: readonly Side[] = [
    { title: 'recorded', run: recorded },
    { title: 'replayed', run: replayed },
    ...candidates.map(({ run, scores }, at) => ({
      title: many ? `${visible(model)} ${at + 1}` : visible(model),
      run,
      scores,
    })),
  ];
  const scorers = [...new Set(candidates.flatMap(({ scores }) => Object.keys(scores)))];
  const rows = sides.map(({ title, run, scores }) => [
    `  ${title}`,
    ...(run === null ? ['-', '-', '-'] : figures(run)),
    ...scorers.map((name) => (scores ? number(scores[name]?.score ?? null) : '')),
  ]);
  const head = ['', 'ended', 'tokens', 'latency', ...scorers.map((name) => visible(name))];
  const notes = [
    ...(replayed?.divergence ? [`  replayed: ${visible(replayed.divergence.text)}`] : []),
    ...candidates.flatMap(({ run, error }, at) => [
      ...(error === null ? [] : [`  run ${at + 1}: error: ${visibleMessage(error)}`]),
      ...(run?.divergence ? [`  run ${at + 1}: ${visible(run.divergence.text)}`] : []),
    ]),
  ];
  return [
    ...columns([head, ...rows]),
    ...grouped('calls', sides, ({ calls }) => calls.map(({ tool }) => tool).join(', ') || 'none'),
    ...grouped('answer', sides, ({ answer }) => (answer === null ? '-' : short(answer))),
    ...notes,
  ];
}

/** One of the runs that are compared. */
interface Side {
  readonly title: string;
  readonly run: EvalRun | null;
  /** Only of a candidate. */
  readonly scores?: CandidateRun['scores'];
}

function figures({ outcome, usage, latencyMs }: EvalRun): readonly string[] {
  const latency = latencyMs === null ? '-' : formatDuration(latencyMs);
  return [outcome?.reason ?? '-', formatUsage(usage), latency];
}

/** Each value once, with the runs that have it: `  answer: "Paid." (recorded, replayed)`. */
function grouped(
  name: string,
  sides: readonly Side[],
  value: (run: EvalRun) => string,
): readonly string[] {
  const titles = new Map<string, readonly string[]>();
  for (const { title, run } of sides) {
    if (run === null) continue;
    const text = visible(value(run));
    titles.set(text, [...(titles.get(text) ?? []), title]);
  }
  return [...titles].map(([text, of]) =>
    of.length === sides.length ? `  ${name}: ${text}` : `  ${name}: ${text} (${of.join(', ')})`,
  );
}

function short(text: string): string {
  const line = show(text);
  return line.length > ANSWER_CHARACTERS ? `${line.slice(0, ANSWER_CHARACTERS)}…` : line;
}

function gateRow({ name, bound, actual, passed }: GateResult): readonly string[] {
  const digits = passed ? DIGITS : digitsApart(bound, actual);
  const limit = `${name.startsWith('scores.') ? 'at least' : 'at most'} ${number(bound, digits)}`;
  return [
    `gate ${visible(name)}`,
    actual === null && passed ? 'not measured' : number(actual, digits),
    limit,
    passed ? 'holds' : 'fails',
  ];
}

const DIGITS = 3;
const MOST_DIGITS = 15;

function number(value: number | null, digits = DIGITS): string {
  return value === null ? 'unknown' : String(Number(value.toFixed(digits)));
}

/** Returns the digits with which two numbers differ: a gate that fails shows why. */
function digitsApart(bound: number, actual: number | null): number {
  let digits = DIGITS;
  while (digits < MOST_DIGITS && number(bound, digits) === number(actual, digits)) digits += 1;
  return digits;
}

function side(run: EvalRun | null): object | null {
  if (run === null) return null;
  const { recording: _recording, ...rest } = run;
  return rest;
}

/** The evaluation as JSON, without the recordings of its runs. */
export function toJson({ cases, gates, passed, finished }: Evaluation, model: string): object {
  return {
    model,
    passed,
    finished,
    gates,
    cases: cases.map(({ name, recorded, replayed, candidates }) => ({
      name,
      recorded: side(recorded),
      replayed: side(replayed),
      candidates: candidates.map((one) => ({ ...one, run: side(one.run) })),
    })),
  };
}

/** The report of an evaluation that has not finished, which stays if the process ends before. */
export function unfinishedReport(model: string): string {
  return junitReport({ cases: [], gates: [], passed: false, finished: false }, model);
}

/** The evaluation in the form of JUnit: a test for each run of each case, and one for each gate. */
export function junitReport({ cases, gates, finished }: Evaluation, model: string): string {
  const runs = cases.flatMap(({ name, candidates }) =>
    candidates.map((candidate, at) => ({
      name: candidates.length > 1 ? `${name} ${at + 1}` : name,
      candidate,
    })),
  );
  const rest = finished ? [] : [UNFINISHED];
  const errors = runs.filter(({ candidate }) => candidate.error !== null).length + rest.length;
  const failures = gates.filter(({ passed }) => !passed).length;
  const time = runs.reduce((sum, { candidate }) => sum + seconds(candidate.run), 0);
  const suite = attributes({
    name: `perdure eval ${model}`,
    tests: runs.length + gates.length + rest.length,
    failures,
    errors,
    time: time.toFixed(3),
  });
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    '<testsuites>',
    `  <testsuite${suite}>`,
    ...runs.map(({ name, candidate }) => runCase(name, candidate)),
    ...gates.map((gate) => gateCase(gate)),
    ...rest,
    '  </testsuite>',
    '</testsuites>',
    '',
  ].join('\n');
}

/** A test that fails because not all runs are there. */
const UNFINISHED = [
  '    <testcase classname="cases" name="all cases" time="0.000">',
  '      <error message="not finished: the evaluation was interrupted, or has failed"/>',
  '    </testcase>',
].join('\n');

function seconds(run: EvalRun | null): number {
  return (run?.latencyMs ?? 0) / 1_000;
}

function runCase(name: string, candidate: CandidateRun): string {
  const { run, error } = candidate;
  const begin = `    <testcase${attributes({ classname: 'cases', name, time: seconds(run).toFixed(3) })}>`;
  const inside = [
    ...(error === null ? [] : [`      <error${attributes({ message: error })}/>`]),
    `      <system-out>${escape(runLines(candidate).join('\n'))}</system-out>`,
  ];
  return [begin, ...inside, '    </testcase>'].join('\n');
}

/** Returns how a run ended, its error, and each score with its reason. */
function runLines({ run, error, scores }: CandidateRun): readonly string[] {
  return [
    ...(run === null ? [] : [run.divergence ? `differs: ${run.divergence.text}` : endOf(run)]),
    ...(error === null ? [] : [`error: ${error}`]),
    ...Object.entries(scores).map(([name, { score, reason }]) =>
      reason === undefined ? `${name} ${number(score)}` : `${name} ${number(score)}: ${reason}`,
    ),
  ];
}

function gateCase(gate: GateResult): string {
  const begin = `    <testcase${attributes({ classname: 'gates', name: gate.name, time: '0.000' })}`;
  if (gate.passed) return `${begin}/>`;
  const [, actual, limit] = gateRow(gate);
  const failure = `      <failure${attributes({ message: `expected ${limit}, got ${actual}` })}/>`;
  return [`${begin}>`, failure, '    </testcase>'].join('\n');
}

function attributes(values: Readonly<Record<string, string | number>>): string {
  return Object.entries(values)
    .map(([name, value]) => ` ${name}="${escape(String(value)).replaceAll('\n', '&#10;')}"`)
    .join('');
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
};

/** Escapes a text for XML, which has no form for control characters and these two. */
function escape(text: string): string {
  const safe = printable(text).replaceAll('\uFFFE', '\\ufffe').replaceAll('\uFFFF', '\\uffff');
  return safe.replaceAll(/[&<>"]/g, (one) => ENTITIES[one] ?? one);
}
