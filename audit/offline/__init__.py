"""Synthetic models that run inside this program: no key, no network, the same answers every time.

    serve       one chat completion; `transport` puts it behind the client that talks to real gateways
    customer, agent, judge      who answers
    playbook    what a wish is; `shop` and `travel` know those of the shipped tasks, `..._rules` the policies
    rubric      what a transcript shows of a task
    reading     how a prompt is taken apart
    chance      numbers that depend on nothing but what they are drawn for

They are scripts, good for trying the pipeline and for showing what it measures; of real models they say
nothing.
"""
