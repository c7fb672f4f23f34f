// The scorers and the gates of `perdure eval examples/evals/cases --scorers examples/evals/evals.ts --model NAME`.
import type { EvalGates, Scorers } from 'perdure/testing';

export const scorers: Scorers = {
  /** It called the same tools as in the recorded run, in whatever order. */
  sameTools: ({ run, recorded }) => {
    const [tools, before] = [run, recorded].map(({ calls }) =>
      calls
        .map(({ tool }) => tool)
        .toSorted()
        .join(', '),
    );
    return { score: tools === before, reason: `called ${tools}` };
  },
  brief: ({ run }) => (run.answer ?? '').length < 200,
};

export const gates: EvalGates = {
  scores: { sameTools: 1, brief: 0.9 },
  diverged: 0.1,
  tokens: 1.5,
};
