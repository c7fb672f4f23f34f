import * as fc from 'fast-check';
import { describe, expect, expectTypeOf, it } from 'vitest';
import { z } from 'zod';
import { renderTemplate, template } from '../../src/prompts/template.js';

const greeting = template('Hello {{name}}, you are {{age}}.', { args: ['name', 'age'] });

/** Calls without types, as from JavaScript. */
function renderLoosely(made: unknown, values: unknown): string {
  return Reflect.apply(renderTemplate, undefined, [made, values]);
}

/** Escapes a text as a template. */
function escaped(text: string): string {
  return text.replaceAll('{{', '{{{{');
}

describe('template', () => {
  it('inserts each value as often as its placeholder occurs', () => {
    expect(renderTemplate(greeting, { name: 'Ada', age: 36 })).toBe('Hello Ada, you are 36.');
    const twice = template('{{a}}{{ a }}{{\ta}}', { args: ['a'] });
    expect(renderTemplate(twice, { a: true })).toBe('truetruetrue');
    expect(renderTemplate(template('as it is'), {})).toBe('as it is');
    expectTypeOf(renderTemplate<typeof greeting.args>)
      .parameter(1)
      .toEqualTypeOf<Record<'name' | 'age', string | number | boolean>>();
  });

  it.each([
    ['{"a": {{x}}}', '{"a": 1}'],
    ['{x} {} } }} }}}', '{x} {} } }} }}}'],
    ['{{{{x}}', '{{x}}'],
    ['{{{x}}}', '{1}'],
    ['{{{{{{x}}}}', '{{1}}'],
    ['{{{{{x', '{{{x'],
    ['{{{{{{{x}}', '{{{1'],
    ['{{x}}{{x}}', '11'],
    ['{{x}}{{{{', '1{{'],
  ])('reads the braces of %j', (text, expected) => {
    const values = expected.includes('1') ? { x: 1 } : {};
    expect(renderLoosely(template(text, { args: Object.keys(values) }), values)).toBe(expected);
  });

  it.each([
    ['{{nmae}}', 'unknown argument "nmae"; expected one of name, age; declare it in `args`'],
    ['{{a}} {{b}}', 'unknown argument "a", "b"'],
    ['so: {{name', 'at position 4, "{{name" does not begin a placeholder'],
    ['{{ }}', 'write {{name}}, or {{{{ for two braces as text'],
    ['{{name age}}', 'does not begin a placeholder'],
    ['{{name\n}}', 'does not begin a placeholder'],
  ])('refuses the text %j', (text, message) => {
    expect(() => template(text, { args: ['name', 'age'] })).toThrow(message);
  });

  it.each([
    [['has space'], 'args: expected letters, digits, and "_", got "has space"'],
    [['__proto__'], 'args: expected letters, digits, and "_", got "__proto__"'],
    [[7], 'args: expected letters, digits, and "_", got 7'],
    ['name', 'args: expected a list of names, or a z.object'],
    [z.object({ at: z.date() }), '`args` has parts that JSON cannot express: "at" (date)'],
  ])('refuses the arguments %j', (args, message) => {
    const given = ['{{at}}', { args }];
    expect(() => Reflect.apply(template, undefined, given) as unknown).toThrow(message);
  });

  it.each([
    [['name', 'age'], 'age'],
    [z.object({ name: z.string(), age: z.int().optional() }), 'age'],
  ])('refuses an argument that the text does not use: %j', (args, unused) => {
    const made = (): unknown =>
      Reflect.apply(template, undefined, ['Hi {{name}} {{{{age}}', { args }]);
    expect(made).toThrow(
      `template: args: expected arguments that the text uses, got "${unused}"; write {{${unused}}} in the text, or remove the argument`,
    );
  });

  it('hashes the text, the arguments, and the version', () => {
    const hashes = [
      template('{{a}}', { args: ['a'] }),
      template('{{a}} ', { args: ['a'] }),
      template('{{a}}{{b}}', { args: ['a', 'b'] }),
      template('{{a}}', { args: z.object({ a: z.string() }) }),
      template('{{a}}', { args: z.object({ a: z.string().min(2) }) }),
      template('{{a}}', { args: ['a'], version: '1' }),
      template('{{a}}', { args: ['a'], version: '2' }),
    ].map(({ hash }) => hash);
    expect(new Set(hashes).size).toBe(hashes.length);
    expect(hashes.every((hash) => /^[0-9a-f]{64}$/.test(hash))).toBe(true);
    expect(template('{{a}}{{b}}', { args: ['b', 'a'] }).hash).toBe(hashes[2]);
  });
});

describe('renderTemplate', () => {
  it('names missing and undeclared arguments, all at once', () => {
    expect(() => renderLoosely(greeting, { nam: 'Ada', toString: 1 })).toThrow(
      [
        'The template cannot be rendered; its arguments are age, name:',
        '- unknown argument "nam", "toString"; expected one of name, age',
        '- age is missing',
        '- name is missing',
      ].join('\n'),
    );
    expect(() => renderLoosely(template('x'), { a: 1 })).toThrow('expected none');
  });

  it('ignores inherited values', () => {
    const odd = template('{{toString}}', { args: ['toString'] });
    expect(() => renderLoosely(odd, {})).toThrow('- toString');
  });

  it('checks values with the schema, and uses its result', () => {
    const made = template('{{count}} of {{items}}{{note}}', {
      args: z.object({
        count: z.int().default(1),
        items: z.array(z.string()),
        note: z.string().optional(),
      }),
    });
    expect(renderTemplate(made, { items: ['a"', '{{note}}'] })).toBe('1 of ["a\\"","{{note}}"]');
    expect(() => renderLoosely(made, { items: [1] })).toThrow('- items[0]: expected string, got 1');
    expect(() => renderLoosely(greeting, { name: {}, age: 1 })).toThrow('- name: fits none of');
  });

  it('refuses a schema that cannot check synchronously', () => {
    const slow = template('{{a}}', {
      args: z.object({ a: z.string().refine(() => Promise.resolve(true)) }),
    });
    expect(() => renderTemplate(slow, { a: 'x' })).toThrow('could not be checked');
  });

  it('inserts values once, whatever braces they contain', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), fc.string(), (before, value, after) => {
        const text = `${before}{{a}}${after}`.replaceAll(/\{\{+(?!a\}\})/g, '{');
        fc.pre(text === `${before}{{a}}${after}` && !before.endsWith('{'));
        const made = template(`${text} {{b}}`, { args: ['a', 'b'] });
        expect(renderTemplate(made, { a: `${value}{{a}}{{b}}`, b: 'once' })).toBe(
          `${before}${value}{{a}}{{b}}${after} once`,
        );
      }),
    );
  });

  it('renders any escaped text verbatim', () => {
    const braces = fc.array(fc.constantFrom('{', '}', 'a', '{{a}}', ' '));
    const text = fc.oneof(
      fc.string(),
      braces.map((pieces) => pieces.join('')),
    );
    fc.assert(
      fc.property(text, (raw) => {
        expect(renderTemplate(template(escaped(raw)), {})).toBe(raw);
      }),
      { numRuns: 500 },
    );
  });

  it('either refuses a text or preserves all of it except placeholders and escapes', () => {
    const pieces = fc.array(fc.constantFrom('{', '{{', '}', '}}', 'a', ' ', 'é'));
    fc.assert(
      fc.property(pieces, (parts) => {
        const text = parts.join('');
        const refused = (() => {
          try {
            return template(`{{a}}${text}`, { args: ['a'] });
          } catch (error) {
            return error;
          }
        })();
        if (refused instanceof Error) expect(text).toContain('{{');
        else {
          const rendered = renderLoosely(refused, { a: '' });
          expect(text.replaceAll(/[{} a]/g, '')).toBe(rendered.replaceAll(/[{} a]/g, ''));
        }
      }),
      { numRuns: 500 },
    );
  });

  it.each(['{', '{{{{', '{{a}}', '}', '{{a', '{{a }'])(
    'reads a million characters of %j in linear time',
    (piece) => {
      const text = piece.repeat(1e6 / piece.length);
      const values = piece.startsWith('{{a') ? { a: 'x' } : {};
      const outcome = (() => {
        try {
          return renderLoosely(template(text, { args: Object.keys(values) }), values);
        } catch (error) {
          return error instanceof Error ? error.message : 'no error';
        }
      })();
      expect(outcome.length).toBeGreaterThan(50);
    },
  );
});
