"""The machine: a turn's text in, events out.  Standard library only, no I/O, no clock, no thread.

One delta's walk, from top to bottom:

    stream      PythonicStream.feed: what users call; the events are taken out at its end
    envelope    which state the turn is in (text, in a block, echo); markers are split off here
    input       its text, a slice at a time, and again where a block left it
    openings    does a block begin here?  Text is held only while that is open
    block       one block: its calls one after the other, and what becomes of those that are none
    calls       a call as Python writes it            json_calls   a call as a JSON object
    values      literals with what is nested in them  numbers, strings, decoder, escapes
    closing     does this quote close the string?     expression: or does a Python expression go on?
                                                      slips: or is the punctuation broken behind it?
    writer      everything that leaves: content, and arguments as JSON, as soon as it is certain
    events      what users get

Beside it:

    cursor      the text of one block, which arrives in pieces, is looked ahead in and rewound
    state       what the readers of one block share: its brackets, the call that is open
    literals    where literals begin and end by Python's own rule, without reading their values
    tokens      the lexicon: quotes, escapes, names, numbers, limits
    dialects    the table of model families: markers, bare lists, echoes, special tokens
    sentinels   finding markers and special tokens that arrive in pieces; text that is only text
    reasoning   what a turn thinks before it says something, told apart for parsers and the proxy
    tools       what a request declares, in every shape of a request
    make_valid  a drop-in for vLLM's function of that name, on the same machine

Readers are generators: ``yield`` means "more text, please", so a reader looks like the grammar while
the caller feeds whatever it has, and a suspended look-ahead costs nothing when it goes on.  Named
``read_…`` they may wait so; ``take_…`` is done at once, or does nothing.  A whole text is a text
fed once: there is no second parser (contract 1, L2).

Who owns what.  A turn has one ``Text``, one ``Writer`` and one ``Input``; they last as long as it
does.  A block has one ``Block`` and one ``Source``; what a block does not take is read again as text.
A call has its brackets (``Block.frames``), and its name and waiting JSON in the writer.  Nothing is
shared between turns but tables.

Where the contract lives:

    1  laws                   cursor (L1, L7), writer (L4), block (L8); they hold for everything
    2  when text is sent      writer; strings and values say what waits
    3  cut off, malformed     block, and expression for what is no literal
    4  values                 strings, escapes, numbers, values; quotes inside strings: closing
    5  names and arguments    cursor (names), calls, tools (a lone object)
    6  where calls live       envelope, openings, dialects; json_calls; sentinels; writer (content)
    7  the wire               not here: ``wire``, ``plugin`` and ``proxy``
"""
