/** A door that a test holds shut: who comes is heard of, and waits until it is opened. */
export interface Gate {
  readonly arrived: Promise<void>;
  readonly passed: Promise<void>;
  arrive(): void;
  open(): void;
}

export function gate(): Gate {
  let arrive = (): void => undefined;
  let open = (): void => undefined;
  const arrived = new Promise<void>((resolve) => {
    arrive = resolve;
  });
  const passed = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { arrived, passed, arrive: () => arrive(), open: () => open() };
}
