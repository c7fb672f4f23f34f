import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { defineTool } from '../../src/tools/define-tool.js';
import { createToolRegistry, type Tool } from '../../src/tools/tool.js';

function tool(name: string, description = `Does ${name}.`): Tool {
  return defineTool({
    name,
    description,
    effect: 'read',
    input: z.object({}),
    execute: () => name,
  });
}

describe('createToolRegistry', () => {
  it('finds tools by name and lists them sorted', () => {
    const registry = createToolRegistry([tool('b'), tool('a'), tool('B')]);
    expect(registry.names).toEqual(['B', 'a', 'b']);
    expect(registry.tools.map(({ name }) => name)).toEqual(['B', 'a', 'b']);
    expect(registry.get('b')?.description).toBe('Does b.');
    expect(registry.get('c')).toBeUndefined();
  });

  it('is not confused by names that every object has', () => {
    expect(createToolRegistry([]).get('constructor')).toBeUndefined();
    expect(createToolRegistry([]).get('__proto__')).toBeUndefined();
    const registry = createToolRegistry([tool('__proto__'), tool('constructor')]);
    expect(registry.get('__proto__')?.name).toBe('__proto__');
    expect(registry.get('constructor')?.name).toBe('constructor');
  });

  it('refuses two tools with the same name, naming both', () => {
    const twins = [tool('x', 'Sends mail.'), tool('y'), tool('x', 'Deletes mail.')];
    expect(() => createToolRegistry(twins)).toThrow(
      'two tools are named "x" (items 1 and 3 of `tools`): "Sends mail." and "Deletes mail."; rename one of them',
    );
  });

  it('refuses one tool that is listed twice', () => {
    const once = tool('x');
    expect(() => createToolRegistry([once, once])).toThrow(
      'the tool "x" is listed twice (items 1 and 2 of `tools`); list it once',
    );
  });
});
