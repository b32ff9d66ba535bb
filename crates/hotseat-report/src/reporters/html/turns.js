// Turns of an attempt as the server or the report folded them. Each item gets its event, and its call from the result.

function turnsOf(one, trace) {
  const events = new Map((trace?.events || []).map((event) => [event.sequence, event]));
  const all = trace?.turns || [];
  // Turns by the call that they answer; those of the tested agent answer none.
  const inner = new Map([[undefined, []]]);
  for (const turn of all) {
    const call = turn.callee?.[1];
    if (!inner.has(call)) inner.set(call, []);
    inner.get(call).push(turn);
  }
  const filled = (turn, record) => {
    const asked = new Map(record?.interrupts?.map((interrupt) => [interrupt.id, interrupt]));
    return turn.items.map((item) => {
      const known = { ...events.get(item.sequence), ...item };
      const call = typeof item.call === 'number' ? record?.tool_calls[item.call] : item.call;
      const answer = asked.get(known.payload?.interruptId);
      const within = call && inner.get(call.id);
      // The id of a call within may be the same.
      if (call) inner.delete(call.id);
      return { ...known, call, answer, inner: within?.map((turn) => ({ ...turn, items: filled(turn) })) };
    });
  };
  return inner.get(undefined).map((turn, at) => ({ ...turn, number: at + 1, items: filled(turn, one.turns?.[at]) }));
}

// The input of a turn.
function inputOf(turn) {
  return turn.items.find((item) => item.type === 'message.user')?.payload.content || '';
}
