"""Batch normalisation over the batches of all processes."""

from typing import Any, Tuple

import torch

from .process import participant, size


class SyncBatchNorm(torch.nn.modules.batchnorm._BatchNorm):
    """Like torch.nn.SyncBatchNorm: in training the statistics are those of all processes."""

    def _check_input_dim(self, x: torch.Tensor) -> None:
        if x.dim() < 2:
            raise ValueError(f"expected at least two dimensions, found {x.dim()}")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Normalises each channel, the second dimension."""
        self._check_input_dim(x)
        if not self.training or size() == 1:
            return super().forward(x)
        result, mean, variance, count = _Normalise.apply(x, self.weight, self.bias, self.eps)
        if self.track_running_stats:
            with torch.no_grad():
                self.num_batches_tracked.add_(1)
                momentum = self.momentum or 1.0 / float(self.num_batches_tracked)
                unbiased = variance * (count / (count - 1).clamp(min=1))
                self.running_mean.lerp_(mean.to(self.running_mean.dtype), momentum)
                self.running_var.lerp_(unbiased.to(self.running_var.dtype), momentum)
        return result

    @classmethod
    def convert_sync_batchnorm(cls, module: torch.nn.Module) -> torch.nn.Module:
        """Replaces all batch normalisations in a module, which keep their parameters."""
        if isinstance(module, torch.nn.modules.batchnorm._BatchNorm) and not isinstance(module, cls):
            new = cls(
                module.num_features,
                module.eps,
                module.momentum,
                module.affine,
                module.track_running_stats,
            )
            for name, parameter in module.named_parameters(recurse=False):
                setattr(new, name, parameter)
            for name, buffer in module.named_buffers(recurse=False):
                setattr(new, name, buffer)
            new.training = module.training
            return new
        for name, child in module.named_children():
            module.add_module(name, cls.convert_sync_batchnorm(child))
        return module


def _summed(values: torch.Tensor) -> torch.Tensor:
    on_host = values.detach().to("cpu", copy=True).contiguous()
    participant().all_reduce(on_host, "sum")
    return on_host.to(values.device)


class _Normalise(torch.autograd.Function):
    @staticmethod
    def forward(
        context: Any, x: torch.Tensor, weight: Any, bias: Any, eps: float
    ) -> Tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        channels = x.shape[1]
        others = [d for d in range(x.dim()) if d != 1]
        wide = x.to(torch.float64)
        own = torch.tensor([x.numel() / channels], dtype=torch.float64, device=x.device)
        sums = _summed(torch.cat([wide.sum(others), wide.pow(2).sum(others), own]))
        count = sums[-1]
        mean = sums[:channels] / count
        variance = (sums[channels:-1] / count - mean.pow(2)).clamp(min=0)
        invstd = (variance + eps).rsqrt()
        shape = [1, channels] + [1] * (x.dim() - 2)
        normal = ((wide - mean.view(shape)) * invstd.view(shape)).to(x.dtype)
        context.save_for_backward(normal, weight, invstd.to(x.dtype), count)
        context.has_bias = bias is not None
        result = normal if weight is None else normal * weight.view(shape)
        result = result if bias is None else result + bias.view(shape)
        context.mark_non_differentiable(mean, variance, count)
        return result, mean, variance, count

    @staticmethod
    def backward(context: Any, gradient: torch.Tensor, *unused: Any) -> Any:
        normal, weight, invstd, count = context.saved_tensors
        shape = [1, normal.shape[1]] + [1] * (normal.dim() - 2)
        others = [d for d in range(normal.dim()) if d != 1]
        of_bias = gradient.sum(others)
        of_weight = (gradient * normal).sum(others)
        means = _summed(torch.cat([of_bias, of_weight]).to(torch.float64)) / count
        mean, along = (m.to(gradient.dtype).view(shape) for m in means.chunk(2))
        scale = invstd if weight is None else invstd * weight
        of_x = (gradient - mean - normal * along) * scale.view(shape)
        return (
            of_x,
            None if weight is None else of_weight,
            of_bias if context.has_bias else None,
            None,
        )


