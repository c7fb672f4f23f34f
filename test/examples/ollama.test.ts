import { expect, test } from 'vitest';
import { ollamaModel } from '../../examples/ollama/ollama-model.js';
import { loadConfig } from '../../src/cli/input/load-config.js';
import { resolve } from 'node:path';
import { describeAdapter, type AdapterUnderTest } from '../models/adapter-contract.js';
import { createMemoryRig } from '../support/memory-rig.js';
import { startOllamaWire, type OllamaWire } from './ollama-wire.js';

function adapter(watched: boolean): AdapterUnderTest<OllamaWire> {
  return {
    wire: startOllamaWire,
    watched,
    lacks: ['rubbish', 'filtered', 'refused', 'quota', 'cached'],
    model: ({ baseUrl }, limits) => ollamaModel({ baseUrl, model: 'llama3.2', ...limits }),
  };
}

describeAdapter('Ollama', adapter(false));
describeAdapter('Ollama, streamed', adapter(true));

test('an agent works with an adapter from its config as with any model', async () => {
  const [rig, wire] = [await createMemoryRig(), await startOllamaWire()];
  try {
    const { agents } = await loadConfig({ folder: resolve('examples', 'ollama'), env: {} });
    const llama = ollamaModel({ baseUrl: wire.baseUrl, model: 'llama3.2' });
    await rig.worker(agents, { models: { llama } });
    wire.script([
      { type: 'reply', calls: [{ name: 'lamps', arguments: {} }] },
      { type: 'reply', text: 'Hall and bath.' },
    ]);
    const { outcome } = await rig.run({ agent: 'local', message: 'Which lamps are on?' });
    expect(outcome).toMatchObject({ status: 'completed', answer: 'Hall and bath.', toolCalls: 1 });
    expect(wire.bodies[1]).toMatchObject({
      model: 'llama3.2',
      messages: [
        { role: 'system' },
        { role: 'user', content: 'Which lamps are on?' },
        { role: 'assistant', tool_calls: [{ function: { name: 'lamps', arguments: {} } }] },
        { role: 'tool', tool_name: 'lamps', content: '["hall","bath"]' },
      ],
    });
  } finally {
    await rig.close();
    await wire.close();
  }
});
