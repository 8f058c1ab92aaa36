"""L012, and the probe that feeds it."""

MESSAGES: dict[str, str] = {
    "the loss is no sum with a term whose least value is known": (
        "損失不是含有已知最小值之項的總和"
    ),
    "the other terms of the loss may fall without end": "損失的其他項可能無止境地下降",
    "the terms of the loss change from step to step": "損失的各項每一步都在改變",
    "What is left of a term of the loss after a short training on all of it, over what a guess "
    "gets: the most.": "以整個損失短暫訓練後，損失的某一項所剩，除以猜測所得：取最大者。",
    "The same after training on that term alone.": "只以該項訓練之後的同一數值。",
    "One term of the loss is drowned by the others: alone it is learned, with them it is not.": (
        "損失的某一項被其他項淹沒：單獨訓練能學會，一起訓練則不能。"
    ),
    "term {term:.0f} of {terms:.0f} in the loss of {model} (`{function}`, weight {weight:.3g}) "
    "stays at {together:.2f} of what a guess gets when a copy is trained on the whole loss, and "
    "comes to {alone:.2f} when it is trained on that term alone; of the first gradients it makes "
    "{share:.1%}": (
        "{model} 的損失共 {terms:.0f} 項，其中第 {term:.0f} 項（`{function}`，權重 {weight:.3g}）在"
        "副本以整個損失訓練時停在猜測所得的 {together:.2f}，只以該項訓練時則降到 {alone:.2f}；"
        "它佔最初梯度的 {share:.1%}"
    ),
    "The other terms of the loss outweigh it.": "損失的其他項壓過了它。",
    "loss = {function} + 0.01 * others  # or reduce all terms alike: sums over a sample, means "
    "over the batch": (
        "loss = {function} + 0.01 * others  # 或以相同方式縮減各項：樣本內求和，批次內取平均"
    ),
    "a term that cannot be learned": "無法學會的項",
    "targets that contradict each other": "互相矛盾的目標",
    "terms that fall without end": "無止境下降的項",
}
