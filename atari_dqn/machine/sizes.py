"""Compute the memory of the parts of a run, exactly where possible and from measurements elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

_MB = 10**6

TRANSITION_BYTES_WITHOUT_FRAME = 28
"""action i16, reward f32, discount f32, three flags; the sampler's i64, or a priority, sums and minima."""
SEQUENCE_BYTES_PER_STEP = 8
"""Of sequences: the number of the step in its episode i32, the slot of the recurrent state i32."""
SPARE_STATES = 4
"""Recurrent states of an environment beyond one for each period (`replay.sequences`)."""
MEMORY_GATES = {"lstm": 4, "gru": 3}
MEMORY_STATES = {"lstm": 2, "gru": 1}
"""Gates of a recurrent layer, and values of its state, for each unit."""
ENVIRONMENT_BYTES = 1 * _MB
"""An emulator with its ROM, screen buffers and preprocessing: 0.7 MB measured, ale-py 0.12."""
WORKER_BYTES = 90 * _MB
"""A spawned process with NumPy, OpenCV and ale-py: 63 MB measured before the first emulator."""
ACTOR_BYTES = 350 * _MB
"""The process of an actor with PyTorch, without its network and its environments: an allowance."""
PROCESS_BYTES = 450 * _MB
"""The learner's process after an update of the Nature network: 410 MB measured, torch 2.13 on a CPU."""
CUDA_PROCESS_BYTES = 3000 * _MB
"""The learner's process with CUDA's libraries loaded: an allowance, larger than most builds need."""
CUDA_CONTEXT_BYTES = 1000 * _MB
"""GPU memory of CUDA, cuDNN and cuBLAS: an allowance."""
LOG_BYTES_PER_STEP = 0.5
"""CSV rows, averaged over agent steps: a row of 60 bytes per episode of a few hundred steps."""
SAVED_REPLAY_SHARE = 1 / 30
"""Compressed size of a replay in a checkpoint as a fraction of its memory: an allowance;
docs/results/codec.json has at most 1/70."""
MOST_ACTIONS = 18
"""Number of actions of the console's joystick; most games use fewer."""
MOST_QUANTILES_TRACED = 64
"""Quantiles of the best action's return that are recorded at each step of an evaluation for display."""
EMBEDDING_COSINES = 64
"""Inputs of the embedding of fractions. Dabney et al. (2018b), section 3.1."""

MAX_UNFOLDED_BATCH = 512
"""A GPU computes convolutions of at most so many images as products with their unfolded input, which needs
memory; more images occupy all of it without (docs/decisions/0087)."""

_F32 = 4


def replay_row_bytes(screen_size_pixels: int) -> int:
    """Compute the bytes of one transition in the replay: a u8 frame and the other columns."""
    return screen_size_pixels**2 + TRANSITION_BYTES_WITHOUT_FRAME


def replay_bytes(*, capacity_steps: int, screen_size_pixels: int) -> int:
    """Compute the bytes of a full replay."""
    return capacity_steps * replay_row_bytes(screen_size_pixels)


def states_bytes(*, capacity_steps: int, num_envs: int, period: int, width: int) -> int:
    """Compute the bytes of the recurrent states in a full replay of sequences: one for each period."""
    slots = capacity_steps // num_envs // period + SPARE_STATES
    return _F32 * width * num_envs * slots


def message_bytes(*, steps: int, screen_size_pixels: int) -> int:
    """Compute the bytes of a message of an actor: a frame and the other columns for each step."""
    return steps * replay_row_bytes(screen_size_pixels)


def replay_is_on_gpu(choice: str, *, needed_bytes: int, free_bytes: int) -> bool:
    """Return whether the replay is on the learner's GPU: for `cuda`, and for `auto` if it fits there."""
    return choice == "cuda" or (choice == "auto" and needed_bytes + CUDA_CONTEXT_BYTES <= free_bytes)


def trace_bytes(*, steps: int, num_actions: int, num_atoms: int, num_quantiles: int) -> int:
    """Compute the bytes of recorded decisions: action, random or not, q-values, distribution."""
    distribution = 2 * num_atoms + _F32 * min(num_quantiles, MOST_QUANTILES_TRACED)
    return steps * (2 + _F32 * num_actions + distribution)


@dataclass(frozen=True, kw_only=True)
class NetworkShape:
    """The properties of a network that determine its number of weights."""

    kind: str
    """A kind of network in the schema; another package's torso counts as `nature`."""
    screen_size_pixels: int
    stack_frames: int
    num_actions: int
    hidden_units: int
    width: int = 1
    """Factor of the number of channels in `impala`."""
    pool_size: int = 0
    """Maxima in each direction to which the output of `impala` is pooled; 0 for no pooling."""
    layer_norm: bool = False
    """Whether `impala` normalises its first convolutions and its hidden layer."""
    dueling: bool = False
    noisy: bool = False
    outputs: int = 1
    """Numbers predicted for each action: atoms or quantiles, otherwise 1."""
    cosines: int = 0
    """Inputs of the embedding of fractions in an implicit quantile network; 0 for other networks."""
    memory: str = "none"
    """`lstm`, `gru`, or `none`."""
    memory_units: int = 0
    memory_inputs: bool = False
    shared_hidden: bool = False
    self_prediction: bool = False


def _counts(shape: NetworkShape) -> Counts:
    """Count the convolutions; those of another package's torso as if they were `nature`'s."""
    return _CONVOLUTIONS.get(shape.kind, _CONVOLUTIONS["nature"])(shape)


def network_parameters(shape: NetworkShape) -> int:
    """Compute the number of a network's weights and biases.

    A dueling head has an additional output, for the state, and a hidden layer for each of its two streams, or
    one for both in `dopamine` (Wang et al. 2016). A noisy layer has a σ for each weight and bias. The output
    of an embedding of fractions has the size of the convolutions' output.
    """
    convolutions, features, _ = _counts(shape)
    memory = 0
    if shape.memory != "none":
        memory, features = _memory_parameters(shape, features), shape.memory_units
    streams, heads = (2, shape.num_actions + 1) if shape.dueling else (1, shape.num_actions)
    layers = 1 if shape.shared_hidden or shape.kind == "dopamine" else streams
    hidden = layers * shape.hidden_units * (features + 1)
    is_normalized = shape.layer_norm or shape.kind == "nature_layer_norm"
    norms = 2 * layers * shape.hidden_units if is_normalized else 0
    outputs = heads * shape.outputs * ((shape.hidden_units or features) + 1)
    embedding = (shape.cosines + 1) * features if shape.cosines else 0
    noise = 2 if shape.noisy else 1
    predicted = _prediction_parameters(shape, layers * shape.hidden_units) if shape.self_prediction else 0
    return convolutions + memory + (hidden + outputs) * noise + norms + embedding + predicted


def _prediction_parameters(shape: NetworkShape, features: int) -> int:
    """Count the weights of the transition model's two convolutions, and of the prediction."""
    channels = 32 * shape.width if shape.kind == "impala" else 64
    first = channels * ((channels + shape.num_actions) * 9 + 1)
    return first + channels * (channels * 9 + 1) + features * (features + 1)


def _memory_parameters(shape: NetworkShape, features: int) -> int:
    """Count the weights of a recurrent layer; PyTorch's have two biases for each gate."""
    inputs = features + (1 + shape.num_actions if shape.memory_inputs else 0)
    return MEMORY_GATES[shape.memory] * shape.memory_units * (inputs + shape.memory_units + 2)


Counts = tuple[int, int, int]
"""Counts of a stack of convolutions: weights, outputs, and activations that an update stores per state."""


Layers = tuple[tuple[int, int, int], ...]
"""Channels, kernel and stride of each convolution of a stack."""
_NATURE: Layers = ((32, 8, 4), (64, 4, 2), (64, 3, 1))
_DATA_EFFICIENT: Layers = ((32, 5, 5), (64, 5, 5))


def _convolution_stack(
    layers: Layers, *, padded: bool = False, normalized: bool = False
) -> Callable[[NetworkShape], Counts]:
    """Return the function that computes the counts of a stack of convolutions.

    A padded convolution has ⌈size / stride⌉ output pixels per side. An update stores the activations of each
    layer, their gradients, and the activations of the target network. A normalisation has two weights for
    each channel, and stores its input.
    """

    def count(shape: NetworkShape) -> Counts:
        size, channels, weights, stored = shape.screen_size_pixels, shape.stack_frames, 0, 0
        for filters, kernel, stride in layers:
            weights += filters * (channels * kernel**2 + 1)
            size, channels = _outputs(size, kernel, stride, padded=padded), filters
            stored += 2 * channels * size**2
            if normalized:
                weights, stored = weights + 2 * channels, stored + channels * size**2
        return weights, channels * size**2, stored

    return count


def _outputs(size: int, kernel: int, stride: int, *, padded: bool) -> int:
    """Compute the output pixels of a convolution on each side."""
    return -(-size // stride) if padded else (size - kernel) // stride + 1


def unfolded_bytes(shape: NetworkShape, *, images: int) -> int:
    """Compute the bytes of the unfolded inputs of a stack of convolutions that an update on a GPU stores.

    `images` are those that the online network is applied to at once.
    """
    layers = _UNFOLDED.get(shape.kind)
    if layers is None or images > MAX_UNFOLDED_BATCH:
        return 0
    size, channels, unfolded = shape.screen_size_pixels, shape.stack_frames, 0
    for filters, kernel, stride in layers:
        size = _outputs(size, kernel, stride, padded=shape.kind == "dopamine")
        unfolded += channels * kernel**2 * size**2
        channels = filters
    return _F32 * images * unfolded


_UNFOLDED = {"nature": _NATURE, "dopamine": _NATURE, "data_efficient": _DATA_EFFICIENT}


def _impala(shape: NetworkShape) -> Counts:
    """Compute the counts of three sections of five 3×3 convolutions.

    A section stores the activations of its first layer, again if they are normalised, and ten tensors of the
    pooled size: the pooled activations, their indices (i64, which counts twice), and seven in the two
    residual blocks. A normalisation has two weights for each activation.
    """
    size, channels, weights, stored = shape.screen_size_pixels, shape.stack_frames, 0, 0
    for filters in (16 * shape.width, 32 * shape.width, 32 * shape.width):
        weights += filters * (channels * 9 + 1) + 4 * filters * (filters * 9 + 1)
        stored += filters * size**2
        if shape.layer_norm:
            weights, stored = weights + 2 * filters * size**2, stored + filters * size**2
        size, channels = -(-size // 2), filters
        stored += 10 * filters * size**2
    return weights, channels * (shape.pool_size or size) ** 2, stored


_CONVOLUTIONS: dict[str, Callable[[NetworkShape], Counts]] = {
    "nature": _convolution_stack(_NATURE),
    "nature_layer_norm": _convolution_stack(_NATURE, normalized=True),
    "dopamine": _convolution_stack(_NATURE, padded=True),
    "data_efficient": _convolution_stack(_DATA_EFFICIENT),
    "impala": _impala,
}


def network_bytes(shape: NetworkShape) -> int:
    """Compute the bytes of one copy of a network's weights."""
    return _F32 * network_parameters(shape)


_PREDICTED_STEP_SHARE = 0.4
"""Memory for each predicted step, as a share of that of a minibatch without any."""


def minibatch_bytes(
    shape: NetworkShape,
    *,
    batch_size: int,
    parts: int,
    fractions: int,
    pairs: int,
    are_shifted: bool,
    predicted_steps: int = 0,
) -> int:
    """Compute the bytes of a minibatch: its sampled stacks, and the memory of the update of one part of it.

    An implicit quantile network stores, for each of its `fractions`, the embedding, its product with the
    features, and the gradients of both, one of them twice in the kernels. A quantile loss stores five
    numbers for each of its `pairs` of a prediction and a target. A part is first prepared and then learned
    from. Shifted stacks are f32; others are converted to it by the network. With five `predicted_steps` the
    peak of an update of `bbf_rr2` was three times that without.
    """
    pixels = shape.stack_frames * shape.screen_size_pixels**2
    stack = _F32 * pixels if are_shifted else pixels
    _, features, stored = _counts(shape)
    preparing = 5 * stack  # both stacks before and after the shift, and one copy during it
    converted = 0 if are_shifted else _F32 * pixels
    learning = 2 * stack + converted + _F32 * (stored + 5 * fractions * features + 5 * pairs)
    whole = batch_size * 2 * pixels + batch_size // parts * max(preparing, learning)
    return round(whole * (1 + _PREDICTED_STEP_SHARE * predicted_steps))


def scored_bytes(shape: NetworkShape, *, states: int) -> int:
    """Compute the bytes of f32 frames and of every layer before and after its ReLU, for ReDo."""
    _, _, stored = _counts(shape)
    return _F32 * states * (shape.stack_frames * shape.screen_size_pixels**2 + stored)


def sequences_bytes(shape: NetworkShape, *, batch_size: int, parts: int, frames: int) -> int:
    """Compute the bytes of a minibatch of sequences: their frames, and the memory of the update of one part.

    Each of the `frames` of a sequence is the newest of a stack, which the network converts to f32. A memory
    stores inputs, gates and states.
    """
    pixels = shape.screen_size_pixels**2
    stack = shape.stack_frames * pixels
    _, features, stored = _counts(shape)
    units = MEMORY_GATES.get(shape.memory, 0) * shape.memory_units
    learning = stack + _F32 * (2 * stack + stored + 3 * features + 3 * units)
    return batch_size * (frames + shape.stack_frames) * pixels + batch_size // parts * frames * learning
