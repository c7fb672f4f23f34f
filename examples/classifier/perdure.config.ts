// A classifier: one call, and how probable each class is, from the probabilities of the reply's first
// token. For a model that tells none: classify([…], { samples: 10 }).
//   perdure run ticket "I was charged twice this month" --config examples/classifier/perdure.config.ts
import { defineAgent, defineConfig } from 'perdure';
import { classify } from 'perdure/output';

export default defineConfig({
  agents: [
    defineAgent({
      name: 'ticket',
      instructions: 'You sort the tickets of a software company.',
      output: classify(['something is broken', 'something about money', 'a question', 'spam']),
      attempts: 3,
    }),
  ],
});
